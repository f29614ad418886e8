//! The house: every place with its agent and the rule that decides, and a way to give a place to
//! another agent.

use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::layout::{self, Page, Shell};
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::operations::discord_levels::{Level, LevelKind};
use crate::operations::house::DecidedBy;
use crate::operations::place_tree::{Branch, Node, PlaceKind};

/// Places on a page. Search finds the others.
const MOST: usize = 400;

#[derive(Deserialize)]
pub(super) struct Wanted {
    q: Option<String>,
}

#[derive(Serialize)]
struct First {
    agents: Vec<Choice>,
}

#[derive(Serialize)]
struct Choice {
    id: String,
    label: String,
}

pub(super) async fn page(
    State(state): State<AdminState>,
    Reads(caller): Reads,
    Query(wanted): Query<Wanted>,
) -> Result<Markup, Problem> {
    let shell = Shell::new(state.operations.snapshot().await?, None).seen_by(&caller);
    let words = wanted.q.unwrap_or_default();
    let tree = state.operations.place_tree().await?;
    let all: usize = tree.iter().map(|branch| count(&branch.places)).sum();
    let mut tree = found(tree, &words);
    let unruled = take_unruled(&mut tree);
    let agent = |agent: &std::sync::Arc<crate::agents::Agent>| Choice {
        id: agent.id.to_string(),
        label: agent.label(),
    };
    let first = First {
        agents: shell.agents().iter().map(agent).collect(),
    };
    let about = match can_give(&shell) {
        true => format!("{all} places. Drag an agent onto a place, or use the menu of its row."),
        false => format!("{all} places."),
    };
    let body = html! {
        (layout::head("House", &about, search(&words)))
        div.stack {
            @if can_give(&shell) { (palette(&shell)) }
            @if tree.is_empty() && unruled.is_empty() {
                div.card.empty {
                    @if words.is_empty() { p { "Nobody has written anywhere yet." } }
                    @else { p { "No place is called " b { (words) } "." } }
                }
            }
            @let mut left = MOST;
            @for branch in &tree { (platform(&shell, branch, &mut left)) }
            @if !unruled.is_empty() {
                section aria-label="Places without a rule" {
                    div.row { h2 { "Without a rule" } span.soft.small { "The default agent answers there." } }
                    div.house {
                        @for node in unruled.iter().take(MOST) { (row(&shell, node, 0)) }
                    }
                }
            }
            @if left == 0 || unruled.len() > MOST { p.soft { "There are more places. Search finds them." } }
        }
        (layout::data("first", &first))
    };
    Ok(shell.page(Page::House, &["house.js"], body))
}

fn count(nodes: &[Node]) -> usize {
    nodes.iter().map(|node| 1 + node.children.len()).sum()
}

/// Branches with the places that have these words in name, key or agent.
fn found(tree: Vec<Branch>, words: &str) -> Vec<Branch> {
    let words = words.trim().to_lowercase();
    if words.is_empty() {
        return tree;
    }
    let has = |node: &Node| {
        let agent = node.agent.name.as_deref().unwrap_or_default();
        let levels = node.within.iter().map(|level| level.name.as_str());
        let mut texts = [node.name(), &node.place.id, &node.agent.id, agent]
            .into_iter()
            .chain(levels);
        texts.any(|text| text.to_lowercase().contains(&words))
    };
    let mut kept = Vec::new();
    for mut branch in tree {
        branch.places.retain_mut(|node| {
            if has(node) {
                return true;
            }
            node.children.retain(|child| has(child));
            !node.children.is_empty()
        });
        if !branch.places.is_empty() {
            kept.push(branch);
        }
    }
    kept
}

/// Places for which no rule decides, and which have none inside that has one.
fn take_unruled(tree: &mut Vec<Branch>) -> Vec<Node> {
    let mut unruled = Vec::new();
    for branch in tree.iter_mut() {
        let is_unruled = |node: &Node| {
            let inside = node.children.iter();
            let mut all = inside.chain([node]);
            all.all(|node| node.by == DecidedBy::Default)
        };
        let (without, with): (Vec<Node>, Vec<Node>) = branch.places.drain(..).partition(is_unruled);
        branch.places = with;
        unruled.extend(without);
    }
    tree.retain(|branch| !branch.places.is_empty());
    unruled
}

fn search(words: &str) -> Markup {
    html! {
        form.row method="get" action="/house" role="search" {
            label.sr for="q" { "Search places" }
            input #q type="search" name="q" value=(words) placeholder="Name, key or agent";
            button type="submit" { "Search" }
        }
    }
}

fn palette(shell: &Shell) -> Markup {
    html! {
        div.palette #palette aria-label="Agents" role="list" {
            @for agent in shell.agents() {
                span.chip role="listitem" draggable="true" data-agent=(agent.id) { (layout::who(agent)) }
            }
        }
    }
}

fn platform(shell: &Shell, branch: &Branch, left: &mut usize) -> Markup {
    let name = layout::platform_name(branch.platform);
    html! {
        section aria-label=(name) {
            div.row { h2 { (name) } span.soft.small { (count(&branch.places)) " places" } }
            div.house {
                div.place.place-head aria-hidden="true" {
                    span { "Place" } span { "Agent" } span { "Rule" } span { "Active" } span {}
                }
                (level(shell, &branch.places.iter().collect::<Vec<_>>(), 0, left))
            }
        }
    }
}

/// Places that are in no further level, then each further level with its places.
fn level(shell: &Shell, nodes: &[&Node], depth: u8, left: &mut usize) -> Markup {
    let mut levels: Vec<(&Level, Vec<&Node>)> = Vec::new();
    for node in nodes {
        let Some(inner) = node.within.get(usize::from(depth)) else {
            continue;
        };
        match levels.iter_mut().find(|(known, _)| *known == inner) {
            Some((_, within)) => within.push(node),
            None => levels.push((inner, vec![node])),
        }
    }
    let here = nodes
        .iter()
        .filter(|node| node.within.len() <= usize::from(depth));
    html! {
        @for node in here { (with_children(shell, node, depth, left)) }
        @for (inner, within) in &levels {
            @if *left > 0 {
                (level_head(inner, depth))
                div id=(inside_level(inner)) { (level(shell, within, depth + 1, left)) }
            }
        }
    }
}

fn with_children(shell: &Shell, node: &Node, depth: u8, left: &mut usize) -> Markup {
    if *left == 0 {
        return html! {};
    }
    *left = left.saturating_sub(1 + node.children.len());
    html! {
        (row(shell, node, depth))
        @if !node.children.is_empty() {
            div id=(inside(node)) {
                @for child in node.children.iter().take(MOST) { (row(shell, child, depth + 1)) }
            }
        }
    }
}

/// The row of a server or category.
fn level_head(level: &Level, depth: u8) -> Markup {
    let kind = match level.kind {
        LevelKind::Server => "server",
        LevelKind::Category => "category",
    };
    html! {
        div class={ "place level depth-" (depth) } {
            div.name {
                button.twist type="button" aria-expanded="true" aria-controls=(inside_level(level)) aria-label={ "Places in " (level.name) } { "›" }
                b title=(level.id) { (level.name) }
                span.tag { (kind) }
            }
        }
    }
}

fn inside_level(level: &Level) -> String {
    format!("in-{}", level.id)
}

/// The name without the server, which stands above.
fn short_name(node: &Node) -> &str {
    let server = node.within.first().map(|server| server.name.as_str());
    let rest = server.and_then(|server| node.name().strip_prefix(server)?.strip_prefix('/'));
    rest.unwrap_or(node.name())
}

fn row(shell: &Shell, node: &Node, depth: u8) -> Markup {
    let is_branch = !node.children.is_empty();
    let class = format!(
        "place depth-{depth}{}",
        if is_branch { " branch" } else { "" }
    );
    html! {
        div class=(class) data-place=(node.place.id) data-agent=(node.agent.id) data-how=(by(node)) data-name=(node.name()) {
            div.name {
                @if is_branch { button.twist type="button" aria-expanded="true" aria-controls=(inside(node)) aria-label={ "Places in " (node.name()) } { "›" } }
                @else { span.kind title=(kind(node.kind)) aria-hidden="true" { (sign(node.kind)) } }
                b title=(node.place.id) { (if depth == 0 { node.name() } else { short_name(node) }) }
                @if (depth == 0 || usize::from(depth) == node.within.len()) && !is_branch { span.tag { (kind(node.kind)) } }
                @if node.locked { span.tag title="Only owners and admins switch the agent here" { "locked" } }
            }
            div {
                @match shell.agent(&node.agent.id) {
                    Some(agent) => (layout::who(agent)),
                    None => span { (node.agent.id) },
                }
            }
            div.rule title=(node.rule) {
                span.tag.accent[node.by == DecidedBy::Pin] { (by(node)) } " " (in_short(node))
            }
            div.when { @if let Some(at) = node.last_active_at { (layout::ago(at.0)) } }
            div.signs {
                @if node.waiting > 0 { span.tag.warn { (node.waiting) " waiting" } }
                @if node.undelivered > 0 {
                    a.tag.bad href="/delivery" title=(node.trouble.as_deref().unwrap_or_default()) { (node.undelivered) " undelivered" }
                }
                @if !node.open { span.tag title="No binding and no /agent opens the place" { "closed" } }
                @if can_give(shell) {
                    button.quiet.give type="button" aria-label={ "Give " (node.name()) " to another agent" } title="Give to another agent" { "⋯" }
                }
            }
        }
    }
}

/// The id of the part with the places inside.
fn inside(node: &Node) -> String {
    format!("in-{}", node.place.id)
}

/// The rule without the words that the row has already.
fn in_short(node: &Node) -> &str {
    let rule = node.rule.strip_prefix("config.toml ").unwrap_or(&node.rule);
    match node.by {
        DecidedBy::Pin => rule.strip_prefix("pin ").unwrap_or(rule),
        DecidedBy::Own => rule.split(':').next().unwrap_or(rule),
        DecidedBy::Inherited => rule,
        DecidedBy::Default => "",
    }
}

/// Whether there is another agent, and the caller may give places to it.
fn can_give(shell: &Shell) -> bool {
    shell.agents().len() > 1 && shell.administers()
}

fn by(node: &Node) -> &'static str {
    match node.by {
        DecidedBy::Pin => "pin",
        DecidedBy::Own => "own",
        DecidedBy::Inherited => "inherited",
        DecidedBy::Default => "no rule",
    }
}

fn kind(kind: PlaceKind) -> &'static str {
    match kind {
        PlaceKind::PrivateChat => "private chat",
        PlaceKind::Group => "group",
        PlaceKind::Channel => "channel",
        PlaceKind::Forum => "forum",
        PlaceKind::Topic => "topic",
        PlaceKind::Thread => "thread",
        PlaceKind::Person => "person",
        PlaceKind::Room => "room",
        PlaceKind::Inner => "place",
    }
}

fn sign(kind: PlaceKind) -> &'static str {
    match kind {
        PlaceKind::Topic | PlaceKind::Channel => "#",
        PlaceKind::Forum => "≡",
        PlaceKind::Thread => "↳",
        PlaceKind::Person | PlaceKind::PrivateChat => "@",
        PlaceKind::Group => "◫",
        PlaceKind::Room | PlaceKind::Inner => "·",
    }
}
