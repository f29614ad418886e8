//! Mistakes that a newcomer made and was misled about, each with its remedy now.

use insta::assert_snapshot;

use super::newcomers::remedies;
use super::{config, drafted, report};

const TWO: &str = "[providers.openai]\nkind = \"openai\"\napi_key = { env = \"OPENAI_API_KEY\" }\n";

/// What a remedy says to write is accepted.
#[test]
fn remedies_of_values_can_be_obeyed() {
    let price = format!("{TWO}prices = {{ \"gpt-5.4\" = 2 }}\n");
    assert_snapshot!(remedies(&[
        &price,
        "[limits]\ntokens_per_day = 1,000,000\n",
        "max_running = 1,000 # many\n",
        "[providers.x]\nkind = \"openai\"\nbase_url = \"localhost:1234/v1\"\n",
        "[providers.x]\nkind = \"openai\"\nbase_url = \"api.example.org/v1\"\napi_key = { env = \"K\" }\n",
        "[providers.x]\nkind = \"openai\"\nbase_url = \"http://localhost:1234/v1/chat/completions\"\n",
        "[providers.x]\nkind = \"ollama\"\nbase_url = \"http://localhost:11434/api/chat\"\n",
    ]), @r#"
    [providers.openai] ⏎ kind = "openai" ⏎ api_key = { env = "OPENAI_API_KEY" } ⏎ prices = { "gpt-5.4" = 2 }
        the price of `gpt-5.4` must be a table with two prices
        → write `"gpt-5.4" = { input = 2.0, output = 8.0 }`, in money for a million tokens
    [limits] ⏎ tokens_per_day = 1,000,000
        a number has no commas
        → write `1_000_000`
    max_running = 1,000 # many
        a number has no commas
        → write `1_000`
    [providers.x] ⏎ kind = "openai" ⏎ base_url = "localhost:1234/v1"
        `base_url` is not a whole web address
        → write `base_url = "http://localhost:1234/v1/"`
    [providers.x] ⏎ kind = "openai" ⏎ base_url = "api.example.org/v1" ⏎ api_key = { env = "K" }
        `base_url` is not a whole web address
        → write `base_url = "https://api.example.org/v1/"`
    [providers.x] ⏎ kind = "openai" ⏎ base_url = "http://localhost:1234/v1/chat/completions"
        `base_url` is the address of a single call
        → write `base_url = "http://localhost:1234/v1/"`
    [providers.x] ⏎ kind = "ollama" ⏎ base_url = "http://localhost:11434/api/chat"
        `base_url` is the address of a single call
        → write `base_url = "http://localhost:11434/"`
    "#);
    config(&format!(
        "{TWO}prices = {{ \"gpt-5.4\" = {{ input = 2.0, output = 8.0 }} }}\n"
    ));
    config("[limits]\ntokens_per_day = 1_000_000\n");
    config("[providers.x]\nkind = \"openai\"\nbase_url = \"http://localhost:1234/v1/\"\n");
}

/// One mistake, one problem, and no advice to delete an agent.
#[test]
fn sections_without_their_names() {
    assert_snapshot!(remedies(&[
        "default_model = \"openai/gpt-5.4\"\n[providers]\nkind = \"openai\"\napi_key = { env = \"K\" }\nmodels = [\"gpt-5.4\"]\n",
        "[agents]\nname = \"Ada\"\nemoji = \"x\"\n[[bindings]]\nmatch = \"local\"\nagent = \"ada\"\n",
        "[agents.main]\n[[agents]]\nid = \"ada\"\nname = \"Ada\"\n[[bindings]]\nmatch = \"local\"\nagent = \"ada\"\n",
        "[[agents]]\nname = \"Night Desk\"\n[[agents]]\nname = \"Ada\"\n",
        "[[agents]]\nemoji = \"x\"\n",
        "[channels.telegram]\ntoken = { env = \"X\" }\n",
        "[platforms.discord]\ntoken = { env = \"X\" }\n",
        "[channels.slack]\ntoken = { env = \"X\" }\n",
    ]), @r#"
    default_model = "openai/gpt-5.4" ⏎ [providers] ⏎ kind = "openai" ⏎ api_key = { env = "K" } ⏎ models = ["gpt-5.4"]
        a provider needs a name in its section's name
        → write `[providers.openai]` above it in place of `[providers]`
    [agents] ⏎ name = "Ada" ⏎ emoji = "x" ⏎ [[bindings]] ⏎ match = "local" ⏎ agent = "ada"
        an agent needs an id in its section's name
        → write `[agents.ada]` above it in place of `[agents]`
    [agents.main] ⏎ [[agents]] ⏎ id = "ada" ⏎ name = "Ada" ⏎ [[bindings]] ⏎ match = "local" ⏎ agent = "ada"
        `[[agents]]` is a list, and agents have names
        → write `[agents.ada]` before the keys of this one, and so for each
    [[agents]] ⏎ name = "Night Desk" ⏎ [[agents]] ⏎ name = "Ada"
        `[[agents]]` is a list, and agents have names
        → write `[agents.night-desk]` before the keys of this one, and so for each
    [[agents]] ⏎ emoji = "x"
        `[[agents]]` is a list, and agents have names
        → write `[agents.rose]` before the keys of this one, and so for each
    [channels.telegram] ⏎ token = { env = "X" }
        unknown key `channels`
        → write `[telegram]`
    [platforms.discord] ⏎ token = { env = "X" }
        unknown key `platforms`
        → write `[discord]`
    [channels.slack] ⏎ token = { env = "X" }
        unknown key `channels`
        → platforms are sections of their own: `[telegram]` and `[discord]`
    "#);
}

/// The problem of a section is told there, and not again wherever the section is named.
#[test]
fn no_problem_is_told_twice() {
    let limited = "default_model = \"openai/a\"\n[limits]\ncost_per_day = 1.0\n[agents.main]\n[agents.ada]\n[agents.rose]\n[providers.openai]\nkind = \"openai\"\napi_key = { env = \"K\" }\n";
    assert_snapshot!(remedies(&[
        "[agents.Ada]\n[[bindings]]\nmatch = \"local\"\nagent = \"ada\"\n",
        "default_agent = \"ada\"\n[agent.ada]\nname = \"Ada\"\n",
        "default_model = \"openai/a\"\n[provider.openai]\nkind = \"openai\"\n",
        "default_model = \"openai/a\"\n[providers.OpenAI]\nkind = \"openai\"\napi_key = { env = \"K\" }\n",
        "[providers.openai]\nkind = \"openai\"\napikey = { env = \"K\" }\n",
        "[telegram]\ntokn = { env = \"K\" }\n",
        "default_agent = \"rose\"\nagents = [\"rose\"]\n",
        limited,
    ]), @r#"
    [agents.Ada] ⏎ [[bindings]] ⏎ match = "local" ⏎ agent = "ada"
        an agent id has only a-z, 0-9 and single hyphens inside, such as `night-desk`
        → write [agents.ada] and keep the rest for `name`
    default_agent = "ada" ⏎ [agent.ada] ⏎ name = "Ada"
        unknown key `agent`
        → write `[agents.ada]`
    default_model = "openai/a" ⏎ [provider.openai] ⏎ kind = "openai"
        unknown key `provider`
        → write `[providers.openai]`
    default_model = "openai/a" ⏎ [providers.OpenAI] ⏎ kind = "openai" ⏎ api_key = { env = "K" }
        `OpenAI` cannot be a provider's name
        → use a-z, 0-9 and single hyphens inside, such as `my-server`
    [providers.openai] ⏎ kind = "openai" ⏎ apikey = { env = "K" }
        unknown key `apikey`
        → did you mean `api_key`?
    [telegram] ⏎ tokn = { env = "K" }
        unknown key `tokn`
        → did you mean `token`?
    default_agent = "rose" ⏎ agents = ["rose"]
        `agents` must be a section for each name
        → write it like `[agents.rose]`
    default_model = "openai/a" ⏎ [limits] ⏎ cost_per_day = 1.0 ⏎ [agents.main] ⏎ [agents.ada] ⏎ [agents.rose] ⏎ [providers.openai] ⏎ kind = "openai" ⏎ api_key = { env = "K" }
        a limit on money needs to know what openai/a costs
        → add what it costs, in money for a million tokens ⏎ [providers.openai.prices] ⏎ "a" = { input = 2.5, output = 10 }
    "#);
}

#[test]
fn keys_of_other_programs() {
    assert_snapshot!(remedies(&[
        "[agents.main]\nworkspace = \"/tmp/x\"\n",
        "[agents.main]\nsoul = \"be kind\"\n",
        "[telegram]\ntoken = { env = \"K\" }\nenabled = true\n",
        "[discord]\ntoken = { env = \"K\" }\nallowed_users = [5]\n",
        "[providers.openai]\nkind = \"openai\"\napi_key_env = \"OPENAI_API_KEY\"\n",
        "[telegram]\nbot_token_env = \"TELEGRAM_BOT_TOKEN\"\n",
        "[agents.main]\ntools = [\"now\", \"file_read\"]\n",
        "[agents.main]\ntools = []\n",
    ]), @r#"
    [agents.main] ⏎ workspace = "/tmp/x"
        unknown key `workspace`
        → an agent's workspace is agents/<id>/workspace in the home folder and cannot be elsewhere; [shared_paths.<name>] gives agents another folder
    [agents.main] ⏎ soul = "be kind"
        unknown key `soul`
        → an agent's character is in agents/<id>/SOUL.md of the home folder: write it there, or add a few words with `system_prompt = "…"`
    [telegram] ⏎ token = { env = "K" } ⏎ enabled = true
        unknown key `enabled`
        → the section itself switches the platform on: delete this line, or put `#` before the lines of the section to switch it off
    [discord] ⏎ token = { env = "K" } ⏎ allowed_users = [5]
        unknown key `allowed_users`
        → people are in [access]: `owners = ["discord:123456789012345678"]` names the owners, and `parlor pair` lets others in
    [providers.openai] ⏎ kind = "openai" ⏎ api_key_env = "OPENAI_API_KEY"
        unknown key `api_key_env`
        → write `api_key = { env = "OPENAI_API_KEY" }`
    [telegram] ⏎ bot_token_env = "TELEGRAM_BOT_TOKEN"
        unknown key `bot_token_env`
        → write `token = { env = "TELEGRAM_BOT_TOKEN" }`
    [agents.main] ⏎ tools = ["now", "file_read"]
        `tools` must be a table
        → write `tools = { allow = ["now", "file_read"] }` for these tools alone, or `tools = { deny = ["now", "file_read"] }` for all others
    [agents.main] ⏎ tools = []
        `tools` must be a table
        → write `tools = { allow = ["now"] }` for these tools alone, or `tools = { deny = ["now"] }` for all others
    "#);
    assert_snapshot!(report("[providers.openai]\nkind = \"openai\"\napi_key_env = \"OPENAI_API_KEY\"\n"), @r#"
    error: unknown key `api_key_env`
     --> config.toml:3:1
      |
    3 | api_key_env = "OPENAI_API_KEY"
      | ^^^^^^^^^^^ not a key of a provider
      |
      = help: write `api_key = { env = "OPENAI_API_KEY" }`

    1 problem in config.toml.
    "#);
}

/// A secret under such a key is still covered.
#[test]
fn only_the_name_of_a_variable_is_shown() {
    let told = report("[providers.openai]\nkind = \"openai\"\napi_key_env = \"hunter2\"\n");
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn characters_that_look_like_others() {
    let told = remedies(&[
        "default_agent\u{a0}= \"main\"\n",
        "default_agent = \u{a0}\"main\"\n",
        "default\u{200b}_agent = \"main\"\n",
        "max_running ＝ 5\n",
        "max_running = −5\n",
        "[agents.night–desk]\n",
        "max_running = ５\n",
    ]);
    // Shown by a sign, because nobody could see them here.
    let told = told.replace(['\u{a0}', '\u{200b}'], "⍽");
    assert_snapshot!(told, @r#"
    default_agent⍽= "main"
        an invisible no-break space (U+00A0) is here
        → delete it and type a space
    default_agent = ⍽"main"
        an invisible no-break space (U+00A0) is here
        → delete it and type a space
    default⍽_agent = "main"
        an invisible character (U+200B) is here
        → delete it: put the cursor behind it and press Backspace once
    max_running ＝ 5
        `＝` (U+FF1D) is not `=`
        → type a plain `=` in its place
    max_running = −5
        `−` (U+2212) is not a hyphen
        → type `-` in its place
    [agents.night–desk]
        `–` (U+2013) is not a hyphen
        → type `-` in its place
    max_running = ５
        `５` (U+FF15) is not `5`
        → type a plain `5` in its place
    "#);
    let told = report("default_agent\u{a0}= \"main\"\n").replace('\u{a0}', "⍽");
    assert_snapshot!(told, @r#"
    error: an invisible no-break space (U+00A0) is here
     --> config.toml:1:14
      |
    1 | default_agent⍽= "main"
      |              ^ here
      |
      = help: delete it and type a space

    1 problem in config.toml.
    "#);
}

#[test]
fn lines_that_came_from_elsewhere() {
    assert_snapshot!(remedies(&[
        "max_running = 5 // many\n",
        "max_running = 5 -- many\n",
        "max_running = 5;\n",
        "[agents.main]\npersonality = \"C:\\Users\\ann\"\n",
        "default_agent = \"main\"\n<<<<<<< HEAD\nmax_running = 5\n=======\nmax_running = 6\n>>>>>>> theirs\n",
        "[telegram]\ntoken = { env: \"TELEGRAM_BOT_TOKEN\" }\n",
        "[telegram]\ntoken = { file: \"secrets/telegram\" }\n",
    ]), @r#"
    max_running = 5 // many
        `//` does not begin a comment in TOML
        → begin comments with `#`
    max_running = 5 -- many
        `--` does not begin a comment in TOML
        → begin comments with `#`
    max_running = 5;
        a line ends without `;`
        → delete it
    [agents.main] ⏎ personality = "C:\Users\ann"
        a `\` inside "…" needs a second one
        → write `\\`, or put the text in single quotes: `'C:\folder'`
    default_agent = "main" ⏎ <<<<<<< HEAD ⏎ max_running = 5 ⏎ ======= ⏎ max_running = 6 ⏎ >>>>>>> theirs
        git has left both sides of a conflict here
        → keep the lines of one side, and delete the lines that begin with `<<<<<<<`, `=======` and `>>>>>>>`
    [telegram] ⏎ token = { env: "TELEGRAM_BOT_TOKEN" }
        a key and its value are joined by `=`, not by `:`
        → write `{ env = "TELEGRAM_BOT_TOKEN" }`
    [telegram] ⏎ token = { file: "secrets/telegram" }
        a key and its value are joined by `=`, not by `:`
        → write `{ file = … }`
    "#);
}

#[test]
fn names_of_models_agents_and_people() {
    let rose = "[agents.rose]\n[agents.ada]\n";
    assert_snapshot!(remedies(&[
        "default_model = \"anthropic:claude-x\"\n",
        &format!("default_model = \"gpt-5.4\"\n{TWO}"),
        "default_model = \"gpt-5.4\"\n",
        &format!("default_agent = \"bob\"\n{rose}"),
        "[access]\nowners = [\"discord:ann\"]\n",
        "[access]\nowners = [12345678]\n",
        "[access]\nowners = [\"123456789012345678\"]\n",
        "[access]\nowners = [\"@ann\"]\n",
        &format!("{TWO}prices = {{ \"gpt-5.4\" = {{ input = -1, output = 8 }} }}\n"),
    ]), @r#"
    default_model = "anthropic:claude-x"
        `anthropic:claude-x` does not name a model
        → write `anthropic/claude-x`
    default_model = "gpt-5.4" ⏎ [providers.openai] ⏎ kind = "openai" ⏎ api_key = { env = "OPENAI_API_KEY" }
        `gpt-5.4` does not name a model
        → write `openai/gpt-5.4`
    default_model = "gpt-5.4"
        `gpt-5.4` does not name a model
        → write it like `openai/gpt-5.4`, or `demo` for the built-in demo model
    default_agent = "bob" ⏎ [agents.rose] ⏎ [agents.ada]
        unknown agent `bob`
        → add a section [agents.bob], or name an agent of this file: `main`, `rose`, `ada`
    [access] ⏎ owners = ["discord:ann"]
        `discord:ann` does not name a person
        → write the platform and the number, such as `discord:123456789012345678`; /whoami in the chat shows it
    [access] ⏎ owners = [12345678]
        a person's id must be text in quotes
        → write `"telegram:12345678"`, if that is the id on Telegram; /whoami in the chat shows it
    [access] ⏎ owners = ["123456789012345678"]
        `123456789012345678` does not name a person
        → write `"discord:123456789012345678"`, if that is the id on Discord; /whoami in the chat shows it
    [access] ⏎ owners = ["@ann"]
        `@ann` does not name a person
        → write the platform and the number, such as `telegram:12345678`; /whoami in the chat shows it
    [providers.openai] ⏎ kind = "openai" ⏎ api_key = { env = "OPENAI_API_KEY" } ⏎ prices = { "gpt-5.4" = { input = -1, output = 8 } }
        `input` must be an amount of money, 0 or more, with at most six decimals
        → write it like `input = 2.5`
    "#);
}

/// Warnings name the variable that is to be set.
#[test]
fn the_variable_to_export_is_named() {
    let [warning] = drafted(TWO).warnings.try_into().expect("one warning");
    assert_eq!(
        warning.help.as_deref(),
        Some(
            "set it where Parlor is started (`export OPENAI_API_KEY=…`), or keep the secret in a file and write { file = \"…\" }"
        )
    );
}

/// The README shows a whole file.
#[test]
fn the_config_of_the_readme_is_accepted() {
    let readme = include_str!("../../../README.md");
    let (_, rest) = readme.split_once("```toml\n").expect("a config");
    let (text, _) = rest.split_once("```").expect("its end");
    config(text);
}

/// Slips that were told something that does not help.
#[test]
fn remedies_of_small_slips_work() {
    assert_snapshot!(remedies(&[
        "[agents.main]\nlimits = { tokens_per_day = 1,000, max_steps = 40 }\n",
        "[agents.main]]\nname = \"x\"\n",
        "[agents.main.jobs]\nname = \"a\"\nevery = \"5m\"\nprompt = \"x\"\n",
        "[people.ann]\nids = \"telegram:1\"\n",
        "[telegram]\ntoken = { env = \"T\"\n",
        "[telegram]\ntoken = { env = \"T\" }\nstreaming = on\n",
        "[agents.main]\nmemory = off\n",
        "[access]\nallow_from = [\"telegram:1\"]\n",
        "[agents.rose]\nname = \"Rose\"\n# [agents.ada]\nname = \"Ada\"\n",
    ]), @r#"
    [agents.main] ⏎ limits = { tokens_per_day = 1,000, max_steps = 40 }
        a number has no commas
        → write `limits = { tokens_per_day = 1_000, max_steps = 40 }`
    [agents.main]] ⏎ name = "x"
        one bracket is too many
        → write `[agents.main]`
    [agents.main.jobs] ⏎ name = "a" ⏎ every = "5m" ⏎ prompt = "x"
        `[agents.main.jobs]` needs double brackets
        → each one is an item of a list, so write `[[agents.main.jobs]]` before each
    [people.ann] ⏎ ids = "telegram:1"
        `ids` must be a list
        → write `ids = ["telegram:1"]`
    [telegram] ⏎ token = { env = "T"
        a table in braces is not closed
        → write `token = { env = "T" }`
    [telegram] ⏎ token = { env = "T" } ⏎ streaming = on
        `on` is not a value in TOML
        → write `streaming = true`
    [agents.main] ⏎ memory = off
        text needs quotes
        → write `memory = "off"`
    [access] ⏎ allow_from = ["telegram:1"]
        unknown key `allow_from`
        → `owners = ["telegram:12345678"]` names the owners, `[people.<name>]` others with their role, and `parlor pair` lets people in
    [agents.rose] ⏎ name = "Rose" ⏎ # [agents.ada] ⏎ name = "Ada"
        `name` is set twice
        → take the `#` off line 3, so that it is `[agents.ada]`; or put a `#` before this line too
    "#);
}
