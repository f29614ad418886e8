//! The config that `parlor init` writes: whichever of its switched-off blocks a person switches on,
//! the file is right.

use super::config;
use crate::config::ModelRef;

pub(super) const CONFIG: &str = include_str!("../../../agents/config.toml");

/// `#[telegram]`: a line that is switched off. Prose has a space after its `#`.
fn is_off(line: &str) -> bool {
    line.strip_prefix('#')
        .is_some_and(|rest| !rest.starts_with([' ', ':']))
}

/// The lines of each switched-off block.
fn blocks() -> Vec<Vec<usize>> {
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let off = CONFIG.lines().enumerate().filter(|(_, line)| is_off(line));
    for (number, _) in off {
        match blocks.last_mut() {
            Some(block) if block.last() == Some(&(number - 1)) => block.push(number),
            _ => blocks.push(vec![number]),
        }
    }
    blocks
}

/// The file with some of its blocks switched on.
fn with(on: &[&Vec<usize>]) -> String {
    let lines = CONFIG.lines().enumerate().map(|(number, line)| {
        match on.iter().any(|block| block.contains(&number)) {
            true => line.trim_start_matches('#'),
            false => line,
        }
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn every_choice_of_blocks_is_accepted() {
    let blocks = blocks();
    assert_eq!(blocks.len(), 4, "model, Telegram, Discord, owner");
    for choice in 0_u32..1 << blocks.len() {
        let on: Vec<&Vec<usize>> = (0..blocks.len())
            .filter(|block| choice & (1 << block) != 0)
            .map(|block| &blocks[block])
            .collect();
        config(&with(&on));
    }
}

#[test]
fn the_blocks_do_what_they_say() {
    let blocks = blocks();
    let config = config(&with(&blocks.iter().collect::<Vec<_>>()));
    assert!(matches!(config.default_model, ModelRef::Of { .. }));
    assert!(config.telegram.is_some() && config.discord.is_some());
    assert_eq!(config.access.owners.len(), 1);
    assert_eq!((config.agents.len(), config.bindings.len()), (3, 4));
}

/// The line that a newcomer changes first is the first that can be switched on.
#[test]
fn the_model_comes_first() {
    let first = CONFIG.lines().find(|line| is_off(line));
    assert!(first.is_some_and(|line| line.starts_with("#default_model = ")));
}
