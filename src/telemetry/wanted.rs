//! The wanted log lines: the level of the verb, the flags `-q` and `-v`, and `PARLOR_LOG`.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::is_ours;

const VARIABLE: &str = "PARLOR_LOG";

/// A flag wins over the variable, and the variable over the verb's usual level.
pub(super) fn filter(usual: LevelFilter, flag: Option<LevelFilter>) -> EnvFilter {
    let told = match flag {
        Some(_) => String::new(),
        None => read(&variable()).0.join(","),
    };
    EnvFilter::builder()
        .with_default_directive(flag.unwrap_or(usual).into())
        .parse_lossy(told)
}

/// A remark about the first meaningless part of `PARLOR_LOG`, for the person at the terminal.
pub(super) fn misread() -> Option<String> {
    let text = variable();
    let (_, wrong) = read(&text);
    let first = wrong.first()?;
    Some(format!(
        "`{first}` in {VARIABLE} means nothing and is left out. Write a level (off, error, warn, info, debug, trace), or one part with its level, such as parlor::routing=debug"
    ))
}

fn variable() -> String {
    std::env::var(VARIABLE).unwrap_or_default()
}

/// The meaningful parts, and the others. The library takes any word for the name of a library, and
/// then logs nothing.
fn read(text: &str) -> (Vec<&str>, Vec<&str>) {
    let parts = text.split(',').map(str::trim);
    parts
        .filter(|part| !part.is_empty())
        .partition(|part| is_meaningful(part))
}

fn is_meaningful(part: &str) -> bool {
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    let (target, level) = match part.rsplit_once('=') {
        // The last sign may stand inside a span's fields.
        Some((target, level)) if !level.contains(['}', ']']) => (target, level),
        _ => (part, "trace"),
    };
    let target = target.split('[').next().unwrap_or_default();
    is_level(part) || (is_level(level) && (is_ours(target) || part.starts_with('[')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_told_from_levels_and_parts() {
        let check = |text, right: &[&str], wrong: &[&str]| {
            assert_eq!(read(text), (right.to_vec(), wrong.to_vec()), "{text}");
        };
        check("", &[], &[]);
        check("debug", &["debug"], &[]);
        check(
            "WARN,parlor::routing=trace",
            &["WARN", "parlor::routing=trace"],
            &[],
        );
        check("nonsense", &[], &["nonsense"]);
        check("parlor=loud", &[], &["parlor=loud"]);
        check("hyper=debug, info", &["info"], &["hyper=debug"]);
        check(
            "parlor[turn{id=7}]=debug",
            &["parlor[turn{id=7}]=debug"],
            &[],
        );
    }
}
