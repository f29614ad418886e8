//! How long it takes to find an agent, and that it does not depend on how many bindings there are.

use divan::{Bencher, black_box};
use parlor::config::{Binding, Spanned};
use parlor::domain::{AgentId, Origin};
use parlor::routing::{Table, route};

fn main() {
    divan::main();
}

#[divan::bench(args = [10, 1_000, 10_000])]
fn exact_topic(bencher: Bencher, bindings: usize) {
    let table = table(&topics(bindings));
    let origin = origin(&format!("telegram:topic:-100:{}", bindings / 2 + 1));
    bencher.bench(|| route(black_box(&table), None, black_box(&origin)));
}

#[divan::bench]
fn unbound_place_among_10_000(bencher: Bencher) {
    let table = table(&topics(10_000));
    let origin = origin("telegram:topic:-200:7");
    bencher.bench(|| route(black_box(&table), None, black_box(&origin)));
}

#[divan::bench]
fn name_pattern_among_10_000(bencher: Bencher) {
    let mut bindings = topics(10_000);
    bindings.push(Binding {
        name: Some(spanned("*ops*".to_owned())),
        ..binding("telegram:group:-200")
    });
    let table = table(&bindings);
    let origin = Origin {
        name: Some("All things ops and more".to_owned()),
        ..origin("telegram:topic:-200:7")
    };
    bencher.bench(|| route(black_box(&table), None, black_box(&origin)));
}

#[divan::bench(args = [10, 1_000, 10_000])]
fn build(bencher: Bencher, bindings: usize) {
    let bindings = topics(bindings);
    bencher.bench(|| table(black_box(&bindings)));
}

fn topics(count: usize) -> Vec<Binding> {
    (1..=count)
        .map(|topic| binding(&format!("telegram:topic:-100:{topic}")))
        .collect()
}

fn table(bindings: &[Binding]) -> Table {
    let (table, problems) = Table::from_bindings(AgentId::main(), [AgentId::main()], bindings);
    assert_eq!(problems, []);
    table
}

fn origin(key: &str) -> Origin {
    Origin::new(
        key.parse().expect("a session key"),
        "telegram:5".parse().expect("a person"),
    )
}

fn binding(pattern: &str) -> Binding {
    Binding {
        index: 0,
        line: 0,
        pattern: spanned(pattern.to_owned()),
        agent: spanned(AgentId::main()),
        locked: false,
        require_mention: None,
        users: None,
        roles: None,
        name: None,
        tag: None,
    }
}

fn spanned<T>(value: T) -> Spanned<T> {
    Spanned { value, span: 0..0 }
}
