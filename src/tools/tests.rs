use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::agents::ToolPolicy;
use crate::agents::tests::agent_of;
use crate::config::{Ceilings, RiskProfile, Spanned, ToolLimits};

/// The terminal's turn with `main`.
pub(super) fn scope_in(home: &Path) -> Scope {
    let agent = Arc::new(agent_of(home, "main"));
    let (place, person): (_, PersonId) =
        ("local:desk".parse().unwrap(), "local:you".parse().unwrap());
    Scope {
        agent,
        place,
        former_place: None,
        ids: vec![person.clone()],
        person,
        role: Role::Owner,
        owns_house: true,
        parent: None,
        told_in: None,
        is_job: false,
        people: Default::default(),
        results: Arc::new(Results::new(home)),
        read: Reading::default(),
    }
}

/// The words of a result without the marks of their sources, and notes of the gateway in brackets.
pub(super) fn without_marks(agent: &Agent, result: &str) -> String {
    let (plain, marked) = match result.find('⟦') {
        Some(mark) => result.split_at(mark),
        None => (result, ""),
    };
    let mut words = plain.trim_end_matches("\n\n").to_owned();
    let said = if marked.is_empty() {
        Vec::new()
    } else {
        agent.marks().read(marked)
    };
    for said in said {
        let is_note = said.by == Source::Gateway;
        if !words.is_empty() && !words.ends_with('\n') {
            words.push('\n');
        }
        words.push_str(&if is_note {
            format!("[{}]", said.text)
        } else {
            said.text
        });
    }
    words
}

fn scope_with(policy: ToolPolicy, role: Role) -> Scope {
    let scope = scope_in(Path::new("home"));
    Scope {
        agent: Arc::new(Agent {
            tools: policy,
            ..(*scope.agent).clone()
        }),
        role,
        ..scope
    }
}

fn call(name: &str) -> ToolCall {
    ToolCall {
        id: "1".into(),
        name: name.into(),
        arguments: json!({ "path": "../nowhere" }),
    }
}

async fn said(policy: ToolPolicy, role: Role, tool: &str) -> String {
    let scope = scope_with(policy, role);
    ToolBox::standard()
        .view(&scope.agent, role)
        .call(&scope, &call(tool))
        .await
        .text
}

fn names(list: &[&str]) -> Vec<Spanned<String>> {
    list.iter()
        .map(|name| Spanned {
            value: (*name).to_owned(),
            span: 0..0,
        })
        .collect()
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_answered_with_those_that_do() {
    let own = ToolLimits {
        allow: Some(names(&["now", "file_read"])),
        deny: Vec::new(),
        ask: Vec::new(),
    };
    let text = said(
        ToolPolicy {
            own,
            ..Default::default()
        },
        Role::Owner,
        "shell",
    )
    .await;
    assert_eq!(text, "There is no tool `shell`. You have: now, file_read.");
}

/// S2.11
#[tokio::test]
async fn a_refused_call_is_answered_with_the_rule_that_refused_it() {
    let own = ToolLimits {
        allow: None,
        deny: names(&["file_write"]),
        ask: Vec::new(),
    };
    let text = said(
        ToolPolicy {
            own,
            ..Default::default()
        },
        Role::Owner,
        "file_write",
    )
    .await;
    assert_eq!(
        text,
        "The tool `file_write` was not run: the agent's `tools.deny` names it. Go on without it."
    );
    let text = said(ToolPolicy::default(), Role::Guest, "file_write").await;
    assert_eq!(
        text,
        "The tool `file_write` was not run: a guest may use tools up to `look` (`[access.tools]`), and this is a `change` tool. \
         Go on without it."
    );
}

/// S2.10
#[test]
fn without_a_policy_nothing_is_filtered() {
    let scope = scope_with(ToolPolicy::default(), Role::Owner);
    let tools = ToolBox::standard();
    assert_eq!(
        tools.view(&scope.agent, Role::Owner).specs().len(),
        tools.names().count()
    );
}

/// S4.34: a view is a pointer to the one set of tools and to its agent, however many tools there
/// are.
#[test]
fn all_agents_share_one_set_of_tools() {
    let tools = ToolBox::standard();
    let (one, other) = (scope_in(Path::new("one")), scope_in(Path::new("other")));
    let views = [&one, &other].map(|scope| tools.view(&scope.agent, scope.role));
    assert!(
        views
            .iter()
            .all(|view| Arc::ptr_eq(&view.tools, &tools.tools))
    );
}

#[test]
fn every_tool_has_a_name_of_its_own() {
    let tools = ToolBox::standard();
    let mut names: Vec<&str> = tools.names().map(|(name, _)| name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn a_huge_result_is_cut_at_a_character() {
    let cut = bounded(Outcome::say("é".repeat(long_results::MAX_RESULT_BYTES)));
    assert_eq!(cut.notes, ["cut: the result was longer"]);
    assert!(cut.text.ends_with('é') && cut.text.len() <= long_results::MAX_RESULT_BYTES);
}

/// A tool of some name and risk that says when it ran.
struct Stub(&'static str, Risk);

#[async_trait]
impl Tool for Stub {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.0.into(),
            description: String::new(),
            parameters: json!({}).into(),
        }
    }

    fn risk(&self) -> Risk {
        self.1
    }

    async fn call(&self, _scope: &Scope, _arguments: Value) -> Outcome {
        Outcome::say("it ran")
    }
}

const STUBS: [(&str, Risk); 6] = [
    ("look_a", Risk::Look),
    ("look_b", Risk::Look),
    ("change_a", Risk::Change),
    ("spawn", Risk::Change),
    ("reach_a", Risk::Reach),
    ("message_send", Risk::Reach),
];

fn any_risk() -> impl Strategy<Value = Risk> {
    prop_oneof![Just(Risk::Look), Just(Risk::Change), Just(Risk::Reach)]
}

fn any_limits() -> impl Strategy<Value = ToolLimits> {
    let some = || {
        proptest::sample::subsequence(STUBS.map(|(name, _)| name).to_vec(), 0..=6)
            .prop_map(|list| names(&list))
    };
    (proptest::option::of(some()), some()).prop_map(|(allow, deny)| ToolLimits {
        allow,
        deny,
        ask: Vec::new(),
    })
}

fn any_policy() -> impl Strategy<Value = ToolPolicy> {
    let profile =
        (any_limits(), proptest::option::of(any_risk())).prop_map(|(limits, max_risk)| {
            RiskProfile {
                name: "some".into(),
                limits,
                max_risk,
            }
        });
    let ceilings = (any_risk(), any_risk(), any_risk(), any_risk()).prop_map(
        |(guest, member, admin, owner)| Ceilings {
            guest,
            member,
            admin,
            owner,
        },
    );
    let own_risk = proptest::option::of(any_risk());
    (
        proptest::option::of(profile),
        any_limits(),
        own_risk,
        ceilings,
    )
        .prop_map(|(profile, own, max_risk, ceilings)| ToolPolicy {
            profile,
            own,
            max_risk,
            after_untrusted: Default::default(),
            ceilings,
        })
}

/// The turn that a run may belong to.
fn any_parent() -> impl Strategy<Value = Option<Arc<Parent>>> {
    let relation = prop_oneof![Just(Relation::Subagent), Just(Relation::Peer)];
    let tools = proptest::option::of(proptest::sample::subsequence(
        STUBS.map(|(name, _)| name.to_owned()).to_vec(),
        0..=6,
    ));
    let parent = (any_policy(), relation, tools).prop_map(|(policy, relation, tools)| {
        let Scope { agent, place, .. } = scope_with(policy, Role::Owner);
        Arc::new(Parent {
            agent,
            place,
            run: "1-0-0".into(),
            relation,
            tools,
        })
    });
    proptest::option::of(parent)
}

fn any_standing() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Guest), Just(Role::Member), Just(Role::Owner)]
}

fn offered(view: &ToolView) -> Vec<String> {
    view.specs().iter().map(|spec| spec.name.clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..Default::default() })]

    /// S2.8, S2.12, S4.17, S3.6: whatever the policies, whoever asks and for whatever turn it runs,
    /// what is offered is what can be called, and every refusal names a rule.
    #[test]
    fn what_is_offered_is_what_can_be_called(policy in any_policy(), role in any_standing(), parent in any_parent()) {
        let tools = ToolBox::of(STUBS.iter().map(|(name, risk)| Box::new(Stub(name, *risk)) as Box<dyn Tool>).collect());
        let scope = scope_with(policy.clone(), role);
        let view = tools.view(&scope.agent, role).within(parent.clone());
        let offered_here = offered(&view);
        if let Some(parent) = &parent {
            let of_its_own = offered(&tools.view(&scope.agent, role));
            let of_parent = offered(&tools.view(&parent.agent, role));
            prop_assert!(offered_here.iter().all(|name| of_its_own.contains(name)), "never more than without a parent");
            prop_assert!(parent.relation == Relation::Peer || offered_here.iter().all(|name| of_parent.contains(name)), "nor than the parent");
            prop_assert!(!offered_here.iter().any(|name| name == "spawn" || name == "message_send"));
            prop_assert!(parent.tools.as_ref().is_none_or(|tools| offered_here.iter().all(|name| tools.contains(name))));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (name, _) in STUBS {
            let text = runtime.block_on(view.call(&scope, &call(name))).text;
            prop_assert_eq!(offered_here.contains(&name.to_owned()), text == "it ran", "{} in {:?}", name, offered_here);
            prop_assert!(text == "it ran" || text.contains(" was not run: "));
            // S2.13: deny has the last word, whichever list it stands in.
            let denied = policy.profile.iter().map(|profile| &profile.limits).chain([&policy.own])
                .any(|limits| limits.deny.iter().any(|denied| denied.value == name));
            prop_assert!(!(denied && text == "it ran"));
        }
    }
}
