//! The skills of an agent, and the readable part of each skill.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::agents::tests::agent_of;
use crate::agents::{Team, write_home};

fn write(home: &Path, path: &str, text: &str) {
    let path = home.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn put(home: &Path, shelf: &str, name: &str, description: &str) {
    let text = format!(
        "---\nname: {name}\ndescription: {description}\n---\nSteps of {name}: {description}\n"
    );
    write(home, &format!("{shelf}/{name}/SKILL.md"), &text);
}

fn agent(home: &Path, id: &str, skills: Option<&[&str]>) -> Agent {
    let skills = skills.map(|list| list.iter().map(|&name| name.to_owned()).collect());
    Agent {
        skills,
        ..agent_of(home, id)
    }
}

fn two_in_the_pool() -> TempDir {
    let home = TempDir::new().unwrap();
    put(home.path(), "skills", "alpha", "first");
    put(home.path(), "skills", "beta", "second");
    home
}

fn names(agent: &Agent) -> Vec<String> {
    Skills::load(agent)
        .names()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

fn text(agent: &Agent, name: &str, file: Option<&str>) -> String {
    read(agent, name, file).map_or_else(|error| error.to_string(), |content| content.text)
}

/// S0.12, S2.10
#[test]
fn without_a_list_an_agent_has_the_whole_pool_also_what_comes_later() {
    let home = two_in_the_pool();
    let dot = agent(home.path(), "dot", None);
    assert_eq!(names(&dot), ["alpha", "beta"]);
    put(home.path(), "skills", "gamma", "third");
    assert_eq!(names(&dot), ["alpha", "beta", "gamma"]);
    assert_eq!(text(&dot, "gamma", None), "Steps of gamma: third");
}

/// S6.1
#[test]
fn a_denied_skill_is_neither_listed_nor_read_also_when_it_comes_later() {
    let home = two_in_the_pool();
    put(home.path(), "agents/dot/skills", "own", "mine");
    let denied = |names: &[&str], allowed: Option<&[&str]>| Agent {
        denied_skills: names.iter().map(|&name| name.to_owned()).collect(),
        ..agent(home.path(), "dot", allowed)
    };
    let dot = denied(&["beta", "own", "gamma"], None);
    assert_eq!(names(&dot), ["alpha"]);
    put(home.path(), "skills", "gamma", "third");
    put(home.path(), "skills", "delta", "fourth");
    assert_eq!(names(&dot), ["alpha", "delta"]);
    for name in ["beta", "own", "gamma"] {
        let told = text(&dot, name, None);
        assert!(
            told.starts_with(&format!("You have no skill `{name}`.")),
            "{told}"
        );
    }
    // The deny list counts last.
    assert_eq!(
        names(&denied(&["beta"], Some(&["alpha", "beta"]))),
        ["alpha"]
    );
}

/// S0.4, S0.13, S2.9
#[test]
fn what_is_not_in_the_list_is_neither_listed_nor_read() {
    let home = two_in_the_pool();
    put(home.path(), "agents/dot/skills", "own", "mine");
    let some = agent(home.path(), "dot", Some(&["alpha"]));
    assert_eq!(names(&some), ["alpha"]);
    assert_eq!(text(&some, "alpha", None), "Steps of alpha: first");
    assert_eq!(
        text(&some, "beta", None),
        "You have no skill `beta`. You have: alpha."
    );
    let none = agent(home.path(), "dot", Some(&[]));
    assert_eq!(names(&none), [] as [&str; 0]);
    for name in ["alpha", "own"] {
        assert_eq!(text(&none, name, None), "You have no skills.");
    }
}

/// S4.25
#[test]
fn a_local_skill_is_its_agents_only_and_stands_before_the_pools() {
    let home = two_in_the_pool();
    put(home.path(), "agents/dot/skills", "own", "mine");
    put(home.path(), "agents/dot/skills", "alpha", "my way");
    let (dot, eve) = (
        agent(home.path(), "dot", None),
        agent(home.path(), "eve", None),
    );
    let skills = Skills::load(&dot);
    let seen: Vec<_> = skills
        .readable
        .iter()
        .map(|skill| (skill.name.as_str(), skill.origin, skill.because))
        .collect();
    let (pool, local) = (SkillOrigin::Pool, SkillOrigin::Local);
    assert_eq!(
        seen,
        [
            ("alpha", local, Because::OwnInsteadOfPool),
            ("beta", pool, Because::WholePool),
            ("own", local, Because::Own)
        ]
    );
    assert_eq!(
        skills.left_out,
        [LeftOut {
            name: "alpha".into(),
            origin: pool,
            reason: Reason::Overshadowed
        }]
    );
    assert_eq!(text(&dot, "alpha", None), "Steps of alpha: my way");
    assert_eq!(names(&eve), ["alpha", "beta"]);
    assert_eq!(
        text(&eve, "own", None),
        "You have no skill `own`. You have: alpha, beta."
    );
}

#[test]
fn a_broken_skill_is_told_with_its_line_and_the_others_stay() {
    let home = two_in_the_pool();
    write(
        home.path(),
        "skills/broken/SKILL.md",
        "---\nname: other\ndescription: x\n---\n",
    );
    fs::create_dir_all(home.path().join("skills/empty")).unwrap();
    let dot = agent(home.path(), "dot", None);
    let skills = Skills::load(&dot);
    assert_eq!(skills.names(), ["alpha", "beta"]);
    let reasons: Vec<String> = skills
        .left_out
        .iter()
        .map(|left| format!("{}: {}", left.name, left.reason))
        .collect();
    insta::assert_snapshot!(reasons.join("\n"), @"
    broken: broken, line 2: `name` is `other` but the folder is `broken`; give both the same name
    empty: broken, line 1: there is no such file; a skill's folder needs one
    ");
    put(home.path(), "skills", "broken", "mended");
    assert_eq!(names(&dot), ["alpha", "beta", "broken"]);
}

#[test]
fn files_of_a_skill_are_read_and_nothing_outside_its_folder() {
    let home = two_in_the_pool();
    write(home.path(), "skills/alpha/references/form.md", "a form");
    write(home.path(), "skills/alpha/data.bin", "x");
    fs::write(home.path().join("skills/alpha/data.bin"), [0xff, 0xfe]).unwrap();
    write(home.path(), "secret.md", "a secret");
    std::os::unix::fs::symlink(
        home.path().join("secret.md"),
        home.path().join("skills/alpha/link.md"),
    )
    .unwrap();
    std::os::unix::fs::symlink(
        "../beta/SKILL.md",
        home.path().join("skills/alpha/sibling.md"),
    )
    .unwrap();
    let dot = agent(home.path(), "dot", None);
    assert_eq!(text(&dot, "alpha", Some("references/form.md")), "a form");
    assert_eq!(
        read(&dot, "alpha", None).unwrap().files,
        ["data.bin", "references/form.md"]
    );
    for outside in [
        "../beta/SKILL.md",
        "../../secret.md",
        "link.md",
        "sibling.md",
        "/etc/hostname",
        "references/../../beta/SKILL.md",
    ] {
        let answer = text(&dot, "alpha", Some(outside));
        assert!(
            answer.contains("outside the skill's folder"),
            "{outside}: {answer}"
        );
    }
    assert_eq!(
        text(&dot, "alpha", Some("nope.md")),
        "The skill `alpha` has no file `nope.md`. It has: data.bin, references/form.md."
    );
    assert_eq!(
        text(&dot, "alpha", Some("data.bin")),
        "`data.bin` of the skill `alpha` cannot be read: it is not text."
    );
    assert!(text(&dot, "alpha", Some("references")).contains("not a regular file"));
    for name in ["../alpha", "alpha/../beta", "", "."] {
        assert!(
            text(&dot, name, None).starts_with("You have no skill"),
            "{name}"
        );
    }
}

#[test]
fn a_whole_skill_that_is_a_link_out_is_left_out() {
    let (home, elsewhere) = (two_in_the_pool(), two_in_the_pool());
    std::os::unix::fs::symlink(
        elsewhere.path().join("skills/beta"),
        home.path().join("skills/linked"),
    )
    .unwrap();
    let skills = Skills::load(&agent(home.path(), "dot", None));
    assert_eq!(skills.names(), ["alpha", "beta"]);
    assert_eq!(skills.left_out.len(), 1);
}

#[test]
fn the_skills_that_ship_are_written_well() {
    let home = TempDir::new().unwrap();
    write_home(home.path(), Team::Whole).unwrap();
    for (id, expected) in [
        ("main", &["thread-summary"][..]),
        ("rose", &["thread-summary", "tighten"]),
        ("ada", &["bug-report", "thread-summary"]),
    ] {
        let agent = agent(home.path(), id, None);
        let skills = Skills::load(&agent);
        assert_eq!(
            (skills.names(), skills.left_out.len()),
            (expected.to_vec(), 0),
            "{id}"
        );
        assert!(
            skills
                .readable
                .iter()
                .all(|skill| !text(&agent, &skill.name, None).is_empty())
        );
    }
    assert!(
        text(
            &agent(home.path(), "ada", None),
            "bug-report",
            Some("template.md")
        )
        .contains("**Seen:**")
    );
}
