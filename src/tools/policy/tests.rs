use super::*;
use crate::config::{Ceilings, RiskProfile};

fn names(list: &[&str]) -> Vec<Spanned<String>> {
    list.iter()
        .map(|name| Spanned {
            value: (*name).to_owned(),
            span: 0..0,
        })
        .collect()
}

fn limits(allow: Option<&[&str]>, deny: &[&str]) -> ToolLimits {
    ToolLimits {
        allow: allow.map(names),
        deny: names(deny),
        ask: Vec::new(),
    }
}

/// Everything is refused by every rule; taking the first rule away shows the next.
///
/// S3.9: the order is risk profile, the agent's own list, ceiling. S2.13: deny after allow.
#[test]
fn rules_are_asked_in_a_fixed_order() {
    let mut profile = RiskProfile {
        name: "careful".into(),
        limits: limits(Some(&[]), &["shell"]),
        max_risk: Some(Risk::Look),
    };
    let mut policy = ToolPolicy {
        profile: Some(profile.clone()),
        own: limits(Some(&[]), &["shell"]),
        max_risk: Some(Risk::Change),
        after_untrusted: AfterUntrusted::Label,
        ceilings: Ceilings::default(),
    };
    let ask = |policy: &ToolPolicy| {
        decide(policy, "shell", Risk::Reach, Role::Guest).map_err(|refusal| refusal.to_string())
    };
    let refused =
        |policy: &ToolPolicy, expected: &str| assert_eq!(ask(policy), Err(expected.to_owned()));

    refused(&policy, "the risk profile `careful` does not allow it");
    profile.limits = limits(Some(&["shell"]), &["shell"]);
    policy.profile = Some(profile.clone());
    refused(&policy, "the risk profile `careful` denies it");
    profile.limits = limits(None, &[]);
    policy.profile = Some(profile);
    refused(
        &policy,
        "the risk profile `careful` stops at `look`, and this is a `reach` tool",
    );
    policy.profile = None;
    refused(&policy, "the agent's `tools.allow` does not name it");
    policy.own = limits(Some(&["shell"]), &["shell"]);
    refused(&policy, "the agent's `tools.deny` names it");
    policy.own = limits(None, &[]);
    refused(
        &policy,
        "the agent's `max_risk` is `change`, and this is a `reach` tool",
    );
    policy.max_risk = None;
    refused(
        &policy,
        "a guest may use tools up to `look` (`[access.tools]`), and this is a `reach` tool",
    );
    policy.ceilings.guest = Risk::Reach;
    assert_eq!(ask(&policy), Ok(()));
}

#[test]
fn guests_only_look_unless_the_config_says_otherwise() {
    let policy = ToolPolicy::default();
    let check = |role, risk, expected: bool| {
        assert_eq!(
            decide(&policy, "any", risk, role).is_ok(),
            expected,
            "{role:?} {risk:?}"
        );
    };
    check(Role::Guest, Risk::Look, true);
    check(Role::Guest, Risk::Change, false);
    check(Role::Guest, Risk::Reach, false);
    check(Role::Member, Risk::Reach, true);
    check(Role::Owner, Risk::Reach, true);
}

/// S3.6: whatever the policies, a run has no tool that its parent lacks.
#[test]
fn a_run_is_within_its_parents_limits() {
    let parent = |relation, tools: Option<&[&str]>, deny: &[&str]| {
        let mut agent = crate::agents::tests::agent_of(std::path::Path::new("home"), "main");
        agent.tools.own.deny = names(deny);
        let tools = tools.map(|tools| tools.iter().map(|name| (*name).to_owned()).collect());
        Parent {
            agent: agent.into(),
            place: "local:desk".parse().unwrap(),
            run: "1-0-0".into(),
            relation,
            tools,
        }
    };
    let check = |parent: &Parent, tool: &str, expected: Result<(), &str>| {
        let decided =
            for_run(parent, tool, Risk::Look, Role::Owner).map_err(|refusal| refusal.to_string());
        assert_eq!(
            decided,
            expected.map_err(str::to_owned),
            "{tool} {:?}",
            parent.relation
        );
    };
    let (child, peer) = (
        parent(Relation::Subagent, None, &["now"]),
        parent(Relation::Peer, None, &["now"]),
    );
    check(
        &child,
        "now",
        Err("the agent you work for may not use it: the agent's `tools.deny` names it"),
    );
    check(&peer, "now", Ok(()));
    for relation in [&child, &peer] {
        check(relation, "file_read", Ok(()));
        check(relation, "spawn", Err("a subagent cannot start another"));
        check(
            relation,
            "agent_send",
            Err("you were asked by another agent yourself, and messages go one hop"),
        );
    }
    check(
        &parent(Relation::Subagent, Some(&["now"]), &[]),
        "now",
        Ok(()),
    );
    check(
        &parent(Relation::Subagent, Some(&["now"]), &[]),
        "file_read",
        Err("whoever gave you this task left it out"),
    );
    let guest = for_run(
        &parent(Relation::Subagent, None, &[]),
        "file_write",
        Risk::Change,
        Role::Guest,
    );
    assert!(matches!(guest, Err(Refusal::Parent(_))));
}

#[test]
fn after_words_below_the_asker_nothing_goes_elsewhere() {
    let mut written = crate::tools::Addresses::default();
    written.learn("see https://example.org/a");
    let check = |rule, read: Labels, role, reach: Reach, expected: Result<Reached, ()>| {
        let reading = Reading::new(read, written.clone());
        let decided = after_reading(rule, &reading, role, reach.clone()).map_err(drop);
        assert_eq!(decided, expected, "{rule} {read} {role} {reach:?}");
    };
    use AfterUntrusted::{Ask, Label as Labelled, Refuse};
    use Reached::{Trusted, Untrusted};
    let (guest, web) = (
        Labels::of(Role::Guest),
        Labels::from(crate::domain::Label::Web),
    );
    let address = |address: &str| Reach::Address(address.to_owned());
    for reach in [
        Reach::Place,
        Reach::Agent,
        Reach::Everybody,
        Reach::Elsewhere,
        address("https://example.org/b"),
    ] {
        for role in Role::ALL {
            let (own, reach) = (Labels::of(role), || reach.clone());
            check(Refuse, own, role, reach(), Ok(Trusted));
            check(Labelled, own, role, reach(), Ok(Trusted));
            check(Refuse, own | web, role, reach(), Err(()));
            check(Labelled, own | web, role, reach(), Ok(Untrusted));
            let below = match role {
                Role::Guest => Ok(Trusted),
                Role::Member | Role::Admin | Role::Owner => Err(()),
            };
            check(Refuse, own | guest, role, reach(), below);
            check(Ask, own, role, reach(), Ok(Trusted));
            let asks = Reached::Asks(Asks::Untrusted { read: web });
            check(Ask, own | web, role, reach(), Ok(asks));
        }
    }
    check(
        Refuse,
        guest | web,
        Role::Owner,
        address("https://example.org/a"),
        Ok(Trusted),
    );
}

/// An ask of the profile or of the agent's own list counts, and a subagent's parent asks too.
#[test]
fn a_list_of_either_asks_and_the_parents_does_too() {
    let asking = |names_of: &[&str]| ToolLimits {
        ask: names(names_of),
        ..ToolLimits::default()
    };
    let profile = RiskProfile {
        name: "careful".into(),
        limits: asking(&["shell"]),
        max_risk: None,
    };
    let check = |profile: Option<&RiskProfile>, own: &[&str], tool: &str, rule: Option<&str>| {
        let policy = ToolPolicy {
            profile: profile.cloned(),
            own: asking(own),
            ..ToolPolicy::default()
        };
        let asks = asks(&policy, tool).map(|rule| rule.to_string());
        assert_eq!(asks.as_deref(), rule, "{tool}");
        assert!(decide(&policy, tool, Risk::Look, Role::Owner).is_ok());
    };
    let own = Some("the agent's `tools.ask` names it");
    let shared = Some("the risk profile `careful` asks before each call");
    check(None, &[], "shell", None);
    check(None, &["shell"], "shell", own);
    check(Some(&profile), &[], "shell", shared);
    check(Some(&profile), &["shell"], "shell", shared);
    check(Some(&profile), &["now"], "now", own);
    check(Some(&profile), &["now"], "other", None);
}
