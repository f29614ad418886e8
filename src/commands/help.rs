//! `/help`: the command list.

use super::SPECS;
use crate::access::Standing;

pub(super) fn run(standing: Standing) -> String {
    let offered = SPECS.iter().filter(|spec| !spec.owners_only || standing == Standing::Owner);
    let lines = offered.map(|spec| match spec.arguments {
        "" => format!("- /{}: {}", spec.name, spec.summary),
        arguments => format!("- /{} `{arguments}`: {}", spec.name, spec.summary),
    });
    lines.collect::<Vec<_>>().join("\n")
}
