use insta::assert_snapshot;

use super::{config, report};
use crate::domain::Platform;

const AGENTS: &str = "[agents.rose]\n[agents.ada]\n";

#[test]
fn a_peer_group_has_its_members_in_order() {
    let text = format!(
        "{AGENTS}[peer_groups.desk]\nmembers = [\"rose\", \"ada\"]\nplatform = \"telegram\"\n"
    );
    let groups = config(&text).peer_groups;
    let [group] = groups.as_slice() else {
        panic!("one group")
    };
    assert_eq!(
        (group.name.as_str(), group.platform),
        ("desk", Some(Platform::Telegram))
    );
    assert_eq!(
        group
            .members
            .iter()
            .map(|member| member.as_str())
            .collect::<Vec<_>>(),
        ["rose", "ada"]
    );
}

/// S3.8
#[test]
fn a_peer_group_that_cannot_be_meant_is_refused() {
    let text = "[peer_groups.desk]\nmembers = [\"rose\", \"adda\"]\n[peer_groups.alone]\nmembers = [\"rose\"]\n\
                [peer_groups.twice]\nmembers = [\"rose\", \"rose\"]\nplatform = \"matrix\"\n[peer_groups.empty]\n";
    assert_snapshot!(report(&format!("{AGENTS}{text}")), @r#"
    error: unknown agent `adda`
     --> config.toml:4:20
      |
    4 | members = ["rose", "adda"]
      |                    ^^^^^^ no agent has this id
      |
      = help: did you mean `ada`? If not, add a section [agents.adda]

    error: the peer group `alone` has fewer than two members
     --> config.toml:6:11
      |
    6 | members = ["rose"]
      |           ^^^^^^^^ nobody to talk to
      |
      = help: name at least two agents, or delete the group

    error: `rose` is named twice
     --> config.toml:8:20
      |
    8 | members = ["rose", "rose"]
      |                    ^^^^^^ the second one
      |
      = help: delete one of them

    error: `platform` cannot be `matrix`
     --> config.toml:9:12
      |
    9 | platform = "matrix"
      |            ^^^^^^^^ not one of the choices
      |
      = help: the choices are `telegram`, `discord`, `local`, `web`

    error: missing key `members`
      --> config.toml:10:14
       |
    10 | [peer_groups.empty]
       |              ^^^^^ a peer group needs `members`
       |
       = help: add a line such as `members = ["rose", "ada"]`

    5 problems in config.toml.
    "#);
}
