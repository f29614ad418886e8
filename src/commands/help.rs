//! `/help`: the command list.

use super::SPECS;
use crate::access::Role;

pub(super) fn run(role: Role) -> String {
    let offered = SPECS.iter().filter(|spec| role >= spec.least);
    let lines = offered.map(|spec| match spec.arguments {
        "" => format!("- /{}: {}", spec.name, spec.summary),
        arguments => format!("- /{} `{arguments}`: {}", spec.name, spec.summary),
    });
    lines.collect::<Vec<_>>().join("\n")
}
