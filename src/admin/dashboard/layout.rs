//! The frame of every page: navigation, the choice of an agent, the head.

use std::sync::Arc;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

use super::assets;
use crate::admin::auth::Caller;
use crate::agents::Agent;
use crate::domain::{AgentId, Platform};
use crate::figures;
use crate::home::Snapshot;
use crate::records::http_keys::Scope;

/// Hues of agents' marks, by their number in the style sheet.
const HUES: u32 = 8;

/// The pages, as the navigation groups them.
const GROUPS: [&[Page]; 5] = [
    &[Page::Chat, Page::House, Page::WhatIf],
    &[
        Page::Overview,
        Page::Conversations,
        Page::Turns,
        Page::Live,
        Page::Approvals,
    ],
    &[Page::Agents, Page::Memory],
    &[Page::People, Page::Jobs, Page::Delivery, Page::Usage],
    &[Page::Config, Page::Logs, Page::Audit, Page::System],
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    Chat,
    House,
    WhatIf,
    Overview,
    Conversations,
    Live,
    Approvals,
    Turns,
    Agents,
    Memory,
    People,
    Jobs,
    Delivery,
    Usage,
    Config,
    Logs,
    Audit,
    System,
}

impl Page {
    pub(super) fn title(self) -> &'static str {
        match self {
            Page::Chat => "Chat",
            Page::House => "House",
            Page::WhatIf => "What if",
            Page::Overview => "Overview",
            Page::Conversations => "Conversations",
            Page::Live => "Live",
            Page::Approvals => "Approvals",
            Page::Turns => "Turns",
            Page::Agents => "Agents",
            Page::Memory => "Memory",
            Page::People => "People",
            Page::Jobs => "Jobs",
            Page::Delivery => "Delivery",
            Page::Usage => "Usage",
            Page::Config => "Config",
            Page::Logs => "Logs",
            Page::Audit => "Audit",
            Page::System => "System",
        }
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Page::Chat => "/chat",
            Page::House => "/house",
            Page::WhatIf => "/what-if",
            Page::Overview => "/overview",
            Page::Conversations => "/conversations",
            Page::Live => "/live",
            Page::Approvals => "/approvals",
            Page::Turns => "/turns",
            Page::Agents => "/agents",
            Page::Memory => "/memory",
            Page::People => "/people",
            Page::Jobs => "/jobs",
            Page::Delivery => "/delivery",
            Page::Usage => "/usage",
            Page::Config => "/config",
            Page::Logs => "/logs",
            Page::Audit => "/audit",
            Page::System => "/system",
        }
    }

    /// Whether the page shows one agent's part when an agent is chosen.
    fn has_scope(self) -> bool {
        matches!(
            self,
            Page::Conversations | Page::Turns | Page::Memory | Page::Jobs | Page::Logs
        )
    }
}

/// What every page needs to know.
pub(super) struct Shell {
    pub(super) snapshot: Arc<Snapshot>,
    /// The agent in the address.
    pub(super) scope: Option<AgentId>,
    /// What the caller may do.
    rights: Scope,
}

impl Shell {
    /// An agent that is not there counts as none.
    pub(super) fn new(snapshot: Arc<Snapshot>, scope: Option<&str>) -> Self {
        let scope = scope.and_then(|word| snapshot.registry.find(word));
        let scope = scope.map(|agent| agent.id.clone());
        Shell {
            snapshot,
            scope,
            rights: Scope::Read,
        }
    }

    /// A page with the buttons that the caller may use.
    pub(super) fn seen_by(self, caller: &Caller) -> Self {
        Shell {
            rights: caller.scope,
            ..self
        }
    }

    /// Whether the caller may do what runs the house from day to day.
    pub(super) fn operates(&self) -> bool {
        self.rights >= Scope::Operate
    }

    /// Whether the caller may change agents, config, roles and tokens.
    pub(super) fn administers(&self) -> bool {
        self.rights >= Scope::Admin
    }

    pub(super) fn agents(&self) -> &[Arc<Agent>] {
        self.snapshot.registry.all()
    }

    pub(super) fn agent(&self, id: &str) -> Option<&Arc<Agent>> {
        self.agents().iter().find(|agent| agent.id.as_str() == id)
    }

    /// A page with a head and some scripts.
    pub(super) fn page(&self, page: Page, scripts: &[&str], body: Markup) -> Markup {
        self.titled(page, page.title(), scripts, body)
    }

    pub(super) fn titled(&self, page: Page, title: &str, scripts: &[&str], body: Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) " · Parlor" }
                    link rel="icon" href=(assets::address("mark.svg")) type="image/svg+xml";
                    link rel="stylesheet" href=(assets::address("app.css"));
                    script type="module" src=(assets::address("app.js")) {}
                    @for script in scripts {
                        script type="module" src=(assets::address(script)) {}
                    }
                }
                body {
                    a.skip.button href="#main" { "Skip to the page" }
                    div.frame {
                        (self.side(page))
                        main.page #main tabindex="-1" { (body) }
                    }
                    div.toasts #toasts role="status" aria-live="polite" {}
                }
            }
        }
    }

    fn side(&self, current: Page) -> Markup {
        html! {
            header.side #side {
                a.brand href="/" { (logo()) "Parlor" }
                button.menu-toggle.quiet #menu-toggle type="button" aria-expanded="false" aria-controls="nav" { "Menu" }
                @if self.agents().len() > 1 && current.has_scope() { (self.switcher(current)) }
                nav.nav #nav aria-label="Pages" {
                    @for group in GROUPS {
                        ul {
                            @for page in group {
                                li {
                                    a href=(self.link(*page)) aria-current=[(*page == current).then_some("page")] { (page.title()) }
                                }
                            }
                        }
                    }
                }
                footer { "Parlor " (env!("CARGO_PKG_VERSION")) }
            }
        }
    }

    /// The chosen agent goes along to other pages.
    fn link(&self, page: Page) -> String {
        match &self.scope {
            Some(agent) if page.has_scope() => format!("{}?agent={agent}", page.path()),
            _ => page.path().to_owned(),
        }
    }

    fn switcher(&self, current: Page) -> Markup {
        html! {
            form.scope method="get" action=(current.path()) {
                label.sr for="scope" { "Agent" }
                select #scope name="agent" data-goes {
                    option value="" { "All agents" }
                    @for agent in self.agents() {
                        option value=(agent.id) selected[self.scope.as_ref() == Some(&agent.id)] { (agent.label()) }
                    }
                }
            }
        }
    }
}

fn logo() -> Markup {
    html! {
        svg viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linejoin="round" aria-hidden="true" {
            path d="M3 9.2 10 3.4l7 5.8V17H3z" {}
            path d="M7.6 17v-4.4a2.4 2.4 0 0 1 4.8 0V17" {}
        }
    }
}

/// The head of a page.
pub(super) fn head(title: &str, about: &str, right: Markup) -> Markup {
    html! {
        div.head {
            div.grow { h1 { (title) } @if !about.is_empty() { p { (about) } } }
            (right)
        }
    }
}

/// An agent's emoji on its hue.
pub(super) fn mark(agent: &Agent) -> Markup {
    sized_mark(agent, "mark")
}

pub(super) fn big_mark(agent: &Agent) -> Markup {
    sized_mark(agent, "mark big")
}

fn sized_mark(agent: &Agent, class: &str) -> Markup {
    let first = agent.name.chars().next().unwrap_or('·').to_string();
    let sign = agent.emoji.as_deref().unwrap_or(&first);
    html! { span class={ (class) " hue-" (hue(&agent.id)) } aria-hidden="true" { (sign) } }
}

/// An agent by mark and name.
pub(super) fn who(agent: &Agent) -> Markup {
    html! { span.who { (mark(agent)) span { (agent.name) } } }
}

/// The same hue for an agent at all times.
pub(crate) fn hue(id: &AgentId) -> u32 {
    let sum = id.as_str().bytes().fold(7_u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(byte))
    });
    sum % HUES
}

/// A time that the page keeps fresh: `3 min`.
pub(super) fn ago(at: i64) -> Markup {
    html! { time data-ago=(at) { (crate::operations::named::moment(at)) } }
}

/// A time with its date.
pub(super) fn at(at: i64) -> Markup {
    html! { time data-at=(at) { (crate::operations::named::moment(at)) } }
}

/// Data for a script of the page.
pub(super) fn data(id: &str, value: &impl Serialize) -> Markup {
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    let text = text.replace('<', "\\u003c");
    html! { script type="application/json" id=(id) { (PreEscaped(text)) } }
}

pub(super) fn platform_name(platform: Platform) -> &'static str {
    match platform {
        Platform::Telegram => "Telegram",
        Platform::Discord => "Discord",
        Platform::Local => "Terminal",
        Platform::Web => "Web chat",
    }
}

/// `1 skill`, `2 memories`.
pub(super) fn counted(number: usize, what: &str) -> String {
    match (number, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {what}s"),
    }
}

/// Words in backticks become code.
pub(super) fn marked(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// A refusal's words as a sentence of a page.
pub(super) fn sentence(text: &str) -> Markup {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase());
    let text: String = first.into_iter().flatten().chain(letters).collect();
    let end = if text.ends_with(['.', '`']) { "" } else { "." };
    html! { (marked(&text)) (end) }
}

/// `1 234 567`, with thin spaces.
pub(super) fn grouped(number: u64) -> String {
    figures::grouped_by("\u{202f}", number)
}

/// `3.4 MB`.
pub(super) fn bytes(number: u64) -> String {
    match number {
        0..1_000 => format!("{number} B"),
        1_000..1_000_000 => format!("{} KB", number / 1_000),
        _ => format!("{}.{} MB", number / 1_000_000, number / 100_000 % 10),
    }
}
