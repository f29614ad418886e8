//! Which call a method and a path mean.
//!
//! <https://discord.com/developers/docs/reference>

/// A call of the REST API, by what it does; faults, holds and the journal go by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Route {
    /// Stands for all others in `fail` and `hold`.
    Any,
    GetGateway,
    GetGatewayBot,
    /// The upgrade to a WebSocket.
    Connect,
    GetMe,
    GetUser,
    GetApplication,
    GetMyGuilds,
    CreateDm,
    GetGuild,
    GetGuildChannels,
    GetGuildMember,
    GetActiveThreads,
    GetChannel,
    ModifyChannel,
    CreateThread,
    CreateThreadFromMessage,
    JoinThread,
    GetMessages,
    GetMessage,
    CreateMessage,
    EditMessage,
    DeleteMessage,
    Typing,
    AddReaction,
    RemoveReaction,
    GetCommands,
    OverwriteCommands,
    CreateCommand,
    DeleteCommand,
    InteractionCallback,
    GetOriginal,
    EditOriginal,
    DeleteOriginal,
    CreateFollowup,
    EditFollowup,
    DeleteFollowup,
    /// A file of the CDN.
    Download,
    /// Nothing the fake knows; answered 404.
    Unknown,
}

const API: &str = "/api/v10/";
pub(super) const CDN: &str = "/attachments/";

/// The call and the variable parts of its path.
pub(super) fn find(method: &str, path: &str) -> (Route, Vec<String>) {
    if let Some(file) = path.strip_prefix(CDN) {
        return (Route::Download, vec![file.into()]);
    }
    let Some(rest) = path.strip_prefix(API) else {
        return (Route::Unknown, Vec::new());
    };
    let segments: Vec<&str> = rest.trim_end_matches('/').split('/').collect();
    let (route, variables) = find_in_api(method, &segments).unwrap_or((Route::Unknown, Vec::new()));
    (route, variables.into_iter().map(str::to_owned).collect())
}

fn find_in_api<'a>(method: &str, segments: &[&'a str]) -> Option<(Route, Vec<&'a str>)> {
    use Route as R;
    let found = match (method, segments) {
        ("GET", ["gateway"]) => (R::GetGateway, vec![]),
        ("GET", ["gateway", "bot"]) => (R::GetGatewayBot, vec![]),
        ("GET", ["users", "@me"]) => (R::GetMe, vec![]),
        ("GET", ["users", "@me", "guilds"]) => (R::GetMyGuilds, vec![]),
        ("GET", ["users", user]) => (R::GetUser, vec![*user]),
        ("GET", ["applications" | "oauth2", .., "@me"]) => (R::GetApplication, vec![]),
        ("POST", ["users", "@me", "channels"]) => (R::CreateDm, vec![]),
        (_, ["guilds", guild, rest @ ..]) => return in_guild(method, guild, rest),
        (_, ["channels", channel, rest @ ..]) => return in_channel(method, channel, rest),
        (_, ["applications", application, rest @ ..]) => {
            return of_application(method, application, rest);
        }
        ("POST", ["interactions", id, token, "callback"]) => {
            (R::InteractionCallback, vec![*id, *token])
        }
        (_, ["webhooks", application, token, rest @ ..]) => {
            return of_webhook(method, application, token, rest);
        }
        _ => return None,
    };
    Some(found)
}

fn in_guild<'a>(method: &str, guild: &'a str, rest: &[&'a str]) -> Option<(Route, Vec<&'a str>)> {
    let found = match (method, rest) {
        ("GET", []) => (Route::GetGuild, vec![guild]),
        ("GET", ["channels"]) => (Route::GetGuildChannels, vec![guild]),
        ("GET", ["threads", "active"]) => (Route::GetActiveThreads, vec![guild]),
        ("GET", ["members", user]) => (Route::GetGuildMember, vec![guild, *user]),
        _ => return None,
    };
    Some(found)
}

fn in_channel<'a>(
    method: &str,
    channel: &'a str,
    rest: &[&'a str],
) -> Option<(Route, Vec<&'a str>)> {
    use Route as R;
    let found = match (method, rest) {
        ("GET", []) => (R::GetChannel, vec![channel]),
        ("PATCH", []) => (R::ModifyChannel, vec![channel]),
        ("POST", ["threads"]) => (R::CreateThread, vec![channel]),
        ("POST", ["typing"]) => (R::Typing, vec![channel]),
        ("PUT", ["thread-members", "@me"]) => (R::JoinThread, vec![channel]),
        ("GET", ["messages"]) => (R::GetMessages, vec![channel]),
        ("POST", ["messages"]) => (R::CreateMessage, vec![channel]),
        ("GET", ["messages", message]) => (R::GetMessage, vec![channel, *message]),
        ("PATCH", ["messages", message]) => (R::EditMessage, vec![channel, *message]),
        ("DELETE", ["messages", message]) => (R::DeleteMessage, vec![channel, *message]),
        ("POST", ["messages", message, "threads"]) => {
            (R::CreateThreadFromMessage, vec![channel, *message])
        }
        ("PUT", ["messages", message, "reactions", emoji, "@me"]) => {
            (R::AddReaction, vec![channel, *message, *emoji])
        }
        ("DELETE", ["messages", message, "reactions", emoji, "@me"]) => {
            (R::RemoveReaction, vec![channel, *message, *emoji])
        }
        _ => return None,
    };
    Some(found)
}

fn of_application<'a>(
    method: &str,
    application: &'a str,
    rest: &[&'a str],
) -> Option<(Route, Vec<&'a str>)> {
    use Route as R;
    let found = match (method, rest) {
        ("GET", ["commands"]) => (R::GetCommands, vec![application]),
        ("PUT", ["commands"]) => (R::OverwriteCommands, vec![application]),
        ("POST", ["commands"]) => (R::CreateCommand, vec![application]),
        ("DELETE", ["commands", command]) => (R::DeleteCommand, vec![application, *command]),
        ("GET", ["guilds", guild, "commands"]) => (R::GetCommands, vec![application, *guild]),
        ("PUT", ["guilds", guild, "commands"]) => (R::OverwriteCommands, vec![application, *guild]),
        _ => return None,
    };
    Some(found)
}

fn of_webhook<'a>(
    method: &str,
    application: &'a str,
    token: &'a str,
    rest: &[&'a str],
) -> Option<(Route, Vec<&'a str>)> {
    use Route as R;
    let found = match (method, rest) {
        ("POST", []) => (R::CreateFollowup, vec![application, token]),
        ("GET", ["messages", "@original"]) => (R::GetOriginal, vec![application, token]),
        ("PATCH", ["messages", "@original"]) => (R::EditOriginal, vec![application, token]),
        ("DELETE", ["messages", "@original"]) => (R::DeleteOriginal, vec![application, token]),
        ("PATCH", ["messages", message]) => (R::EditFollowup, vec![application, token, *message]),
        ("DELETE", ["messages", message]) => {
            (R::DeleteFollowup, vec![application, token, *message])
        }
        _ => return None,
    };
    Some(found)
}
