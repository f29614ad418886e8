//! Reads `[[route_tests]]`: messages, each with the agent that has to answer. The room `home` runs
//! the tests, after the rules are known.

use super::declared::DeclaredAgents;
use super::items::name;
use super::people::People;
use super::reader::{Section, Value, whole_number, wrong_type};
use super::{Problem, Spanned, schema};
use crate::domain::{AgentId, DiscordId, PersonId, Role, SessionKey};

/// The word for no answer.
pub(crate) const NOBODY: &str = "nobody";

/// A `[[route_tests]]` table: a made-up message and its expected answer.
#[derive(Debug, Clone)]
pub struct RouteTest {
    /// The test's name for people; absent where the place tells enough.
    pub name: Option<String>,
    pub place: SessionKey,
    /// The writer. Absent: the only person of the place, else a person without an id.
    pub person: Option<PersonId>,
    /// Roles the writer has on the server.
    pub roles: Vec<DiscordId>,
    pub server: Option<DiscordId>,
    pub category: Option<DiscordId>,
    /// The name of the topic or thread.
    pub topic: Option<String>,
    /// Tags of a forum post.
    pub tags: Vec<String>,
    /// The writer's role, in place of the role in the file.
    pub role: Option<Role>,
    pub text: String,
    /// The message mentions the bot.
    pub mention: bool,
    /// The message answers a message of the bot.
    pub reply: bool,
    /// The agent that has to answer. None: no answer.
    pub agent: Spanned<Option<AgentId>>,
}

/// Leaves out a test with a problem.
pub(super) fn read(
    top: &Section<'_>,
    declared: &DeclaredAgents,
    people: &People,
) -> Vec<RouteTest> {
    let mut tests = Vec::new();
    for item in top.items("route_tests") {
        let before = top.problems.count();
        let Some(section) = item.section(&schema::ROUTE_TEST) else {
            continue;
        };
        let test = test(&section, declared, people);
        tests.extend(test.filter(|_| top.problems.count() == before));
    }
    tests
}

fn test(section: &Section<'_>, declared: &DeclaredAgents, people: &People) -> Option<RouteTest> {
    // All keys are read before a missing key ends the function, so that all problems are noted.
    let key = place(section);
    let agent = agent(section, declared);
    let person = person(section, people);
    let text = text(section);
    let (server, category) = (id(section, "server"), id(section, "category"));
    let roles = section.list("roles", discord_id);
    let tags = section.list("tags", |value| name(value, "a tag"));
    let test_name = section.text("name");
    let topic = section.text("topic");
    let (role, mention) = (section.choice("role"), section.boolean("mention"));
    let reply = section.boolean("reply");
    Some(RouteTest {
        name: test_name.map(|name| name.value),
        place: key?,
        person,
        roles: roles.map(|roles| roles.value).unwrap_or_default(),
        server,
        category,
        topic: topic.map(|topic| topic.value),
        tags: tags
            .map(|tags| tags.value.into_iter().map(|tag| tag.value).collect())
            .unwrap_or_default(),
        role,
        text,
        mention: mention.unwrap_or(true),
        reply: reply.unwrap_or(false),
        agent: agent?,
    })
}

fn place(section: &Section<'_>) -> Option<SessionKey> {
    let text = section.text("place")?;
    let key = text.value.parse::<SessionKey>().ok();
    if key.is_none() {
        let message = format!("`{}` is not the key of a place", text.value);
        section.problems.note(
            Problem::new(text.span, message)
                .label("a message comes from one place")
                .help(
                    "write what /whoami prints there, such as `telegram:topic:-1001234567890:101`",
                ),
        );
    }
    key
}

fn agent(section: &Section<'_>, declared: &DeclaredAgents) -> Option<Spanned<Option<AgentId>>> {
    let name = section.text("agent")?;
    let value = match name.value.as_str() {
        NOBODY => None,
        _ => Some(declared.find(&name, section.problems)?.id.clone()),
    };
    Some(Spanned {
        value,
        span: name.span,
    })
}

/// The person of a test, by id or by the name of a section `[people.<name>]`.
fn person(section: &Section<'_>, people: &People) -> Option<PersonId> {
    let word = section.text("person")?;
    let named = || people.named(&word.value)?.ids.first().cloned();
    let found = word.value.parse().ok().or_else(named);
    if found.is_none() {
        section.problems.note(
            Problem::new(
                word.span.clone(),
                format!("`{}` does not name a person", word.value),
            )
            .label("neither an id nor a name under [people]")
            .help("write an id such as `telegram:12345678`; /whoami in the chat shows it"),
        );
    }
    found
}

/// Commands are answered by the gateway itself.
fn text(section: &Section<'_>) -> String {
    let Some(text) = section.text("text") else {
        return String::new();
    };
    if text.value.starts_with('/') {
        section.problems.note(
            Problem::new(text.span, "a route test is about a message for an agent")
                .label("this is a command")
                .help("delete `text`, or write words that an agent would answer"),
        );
    }
    text.value
}

fn id(section: &Section<'_>, key: &str) -> Option<DiscordId> {
    match discord_id(section.value(key)?) {
        Ok(id) => Some(id),
        Err(problem) => {
            section.problems.note(problem);
            None
        }
    }
}

/// Discord shows ids as long numbers; people write them with or without quotes.
fn discord_id(value: &Value<'_>) -> Result<DiscordId, Problem> {
    let number = match value.get_ref().as_str() {
        Some(text) => text.parse().ok(),
        None => whole_number(value.get_ref()),
    };
    let told =
        || wrong_type("an id of Discord", value, "a number").help("write it like `\"9123\"`");
    number.map(DiscordId).ok_or_else(told)
}
