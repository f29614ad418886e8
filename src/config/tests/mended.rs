//! Mistakes that a file once hid, or that were told with a wrong cause or a wrong remedy.

use insta::assert_snapshot;

use super::newcomers::remedies;
use super::{config, drafted, report};

const FAKE: &str = "[providers.fake]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1/\"\n";

/// A lost header once joined two bindings to one, and the file was fine.
#[test]
fn a_key_twice_in_a_list_of_sections_is_told() {
    let two = |between: &str| {
        format!(
            "[agents.ada]\n[[bindings]]\nmatch = \"telegram:dm:*\"\nagent = \"main\"\n{between}\nmatch = \"local\"\nagent = \"ada\"\n"
        )
    };
    assert_snapshot!(report(&two("#[[bindings]]")), @r#"
    error: `match` is set twice
     --> config.toml:6:1
      |
    3 | match = "telegram:dm:*"
      | ----- the first one
    ...
    6 | match = "local"
      | ^^^^^ its header `[[bindings]]` in line 5 is commented out
      |
      = help: take the `#` off line 5, so that it is `[[bindings]]`; or put a `#` before this line too

    1 problem in config.toml.
    "#);
    assert_snapshot!(remedies(&[
        &two(""),
        "[[route_tests]]\nplace = \"local\"\nagent = \"main\"\n\nplace = \"local\"\nagent = \"main\"\n",
        "[agents.ada]\n[[agents.ada.jobs]]\nname = \"a\"\nevery = \"1h\"\nprompt = \"x\"\n# [[agents.ada.jobs]]\nname = \"b\"\nevery = \"2h\"\nprompt = \"y\"\n",
        "[agents.ada]\njobs = [{ name = \"a\", name = \"b\", every = \"1h\", prompt = \"x\" }]\n",
        "[admin]\n[hooks.a]\nprompt = \"x\"\ntoken = { env = \"A\" }\n# [hooks.b]\nprompt = \"y\"\ntoken = { env = \"B\" }\n",
        &format!("{FAKE}prices = {{ \"a\" = {{ input = 1, input = 2, output = 3 }} }}\n"),
    ]), @r#"
    [agents.ada] ⏎ [[bindings]] ⏎ match = "telegram:dm:*" ⏎ agent = "main" ⏎  ⏎ match = "local" ⏎ agent = "ada"
        `match` is set twice
        → write `[[bindings]]` above it, if another one begins here; if not, delete one of the two lines
    [[route_tests]] ⏎ place = "local" ⏎ agent = "main" ⏎  ⏎ place = "local" ⏎ agent = "main"
        `place` is set twice
        → write `[[route_tests]]` above it, if another one begins here; if not, delete one of the two lines
        `local` is not the key of a place
        → write what /whoami prints there, such as `telegram:topic:-1001234567890:101`
    [agents.ada] ⏎ [[agents.ada.jobs]] ⏎ name = "a" ⏎ every = "1h" ⏎ prompt = "x" ⏎ # [[agents.ada.jobs]] ⏎ name = "b" ⏎ every = "2h" ⏎ prompt = "y"
        `name` is set twice
        → take the `#` off line 6, so that it is `[[agents.ada.jobs]]`; or put a `#` before this line too
    [agents.ada] ⏎ jobs = [{ name = "a", name = "b", every = "1h", prompt = "x" }]
        `name` is set twice
        → delete one of the two lines
    [admin] ⏎ [hooks.a] ⏎ prompt = "x" ⏎ token = { env = "A" } ⏎ # [hooks.b] ⏎ prompt = "y" ⏎ token = { env = "B" }
        `prompt` is set twice
        → take the `#` off line 5, so that it is `[hooks.b]`; or put a `#` before this line too
    [providers.fake] ⏎ kind = "openai" ⏎ base_url = "http://127.0.0.1:9/v1/" ⏎ prices = { "a" = { input = 1, input = 2, output = 3 } }
        `input` is set twice
        → delete one of the two lines
    "#);
}

/// Only the real cause is told, and where prices are missing, all of them at once.
#[test]
fn a_limit_on_money_blames_no_broken_provider() {
    let with = |provider: &str| {
        format!(
            "default_model = \"fake/large\"\n[limits]\ncost_per_day = 1.0\n[agents.rose]\n{provider}"
        )
    };
    let price = "[providers.fake.prices]\n\"large\" = { input = 1, output = 2 }\n";
    assert_snapshot!(remedies(&[
        &with(&format!("[providers.fake]\nkind = \"fake\"\n{price}")),
        &with(&format!("[providers.fake]\ntype = \"openai\"\n{price}")),
        &with(&format!("[providers.fake]\nkind = \"ollama\"\nbase_url = \"x y\"\n{price}")),
        &with("[provider.fake]\nkind = \"ollama\"\n"),
        &with("[models.fake]\nkind = \"ollama\"\n"),
        &with("[providers.fake]\nkind = \"ollama\"\n[providers.fake.prices]\n\"large\" = { input = \"1\", output = 2 }\n"),
    ]), @r#"
    default_model = "fake/large" ⏎ [limits] ⏎ cost_per_day = 1.0 ⏎ [agents.rose] ⏎ [providers.fake] ⏎ kind = "fake" ⏎ [providers.fake.prices] ⏎ "large" = { input = 1, output = 2 }
        `kind` cannot be `fake`
        → the choices are `openai`, `openai-responses`, `anthropic`, `gemini`, `ollama`
    default_model = "fake/large" ⏎ [limits] ⏎ cost_per_day = 1.0 ⏎ [agents.rose] ⏎ [providers.fake] ⏎ type = "openai" ⏎ [providers.fake.prices] ⏎ "large" = { input = 1, output = 2 }
        unknown key `type`
        → did you mean `kind`?
    default_model = "fake/large" ⏎ [limits] ⏎ cost_per_day = 1.0 ⏎ [agents.rose] ⏎ [providers.fake] ⏎ kind = "ollama" ⏎ base_url = "x y" ⏎ [providers.fake.prices] ⏎ "large" = { input = 1, output = 2 }
        `base_url` is not a web address
        → write it like `base_url = "https://api.openai.com/v1/"`
    default_model = "fake/large" ⏎ [limits] ⏎ cost_per_day = 1.0 ⏎ [agents.rose] ⏎ [provider.fake] ⏎ kind = "ollama"
        unknown key `provider`
        → write `[providers.fake]`
    default_model = "fake/large" ⏎ [limits] ⏎ cost_per_day = 1.0 ⏎ [agents.rose] ⏎ [models.fake] ⏎ kind = "ollama"
        unknown key `models`
        → write `[providers.fake]`
    default_model = "fake/large" ⏎ [limits] ⏎ cost_per_day = 1.0 ⏎ [agents.rose] ⏎ [providers.fake] ⏎ kind = "ollama" ⏎ [providers.fake.prices] ⏎ "large" = { input = "1", output = 2 }
        `input` must be an amount of money, 0 or more, with at most six decimals
        → write it like `input = 2.5`
    "#);
    let several = with(&format!(
        "fallback = [\"fake/small\", \"fake/lage\"]\n{FAKE}"
    ));
    assert_snapshot!(report(&several), @r#"
    error: a limit on money needs to know what fake/large, fake/small, fake/lage cost
     --> config.toml:3:1
      |
    3 | cost_per_day = 1.0
      | ^^^^^^^^^^^^ agents under this limit may use these models, and the file has no price for them
      |
      = help: add what they cost, in money for a million tokens
              [providers.fake.prices]
              "large" = { input = 2.5, output = 10 }
              "small" = { input = 2.5, output = 10 }
              "lage" = { input = 2.5, output = 10 }

    1 problem in config.toml.
    "#);
    assert_snapshot!(remedies(&[
        &format!("default_model = \"fake/lrge\"\n[limits]\ncost_per_day = 1.0\n{FAKE}{price}"),
        &format!("default_model = \"fake/x\"\n[agents.rose.limits]\ncost_per_month = 1.0\n{FAKE}prices = {{ \"large\" = {{ input = 1, output = 2 }} }}\n"),
    ]), @r#"
    default_model = "fake/lrge" ⏎ [limits] ⏎ cost_per_day = 1.0 ⏎ [providers.fake] ⏎ kind = "openai" ⏎ base_url = "http://127.0.0.1:9/v1/" ⏎ [providers.fake.prices] ⏎ "large" = { input = 1, output = 2 }
        a limit on money needs to know what fake/lrge costs
        → did you mean `fake/large`? If not, add what it costs, in money for a million tokens ⏎ below the line `[providers.fake.prices]` ⏎ "lrge" = { input = 2.5, output = 10 }
    default_model = "fake/x" ⏎ [agents.rose.limits] ⏎ cost_per_month = 1.0 ⏎ [providers.fake] ⏎ kind = "openai" ⏎ base_url = "http://127.0.0.1:9/v1/" ⏎ prices = { "large" = { input = 1, output = 2 } }
        a limit on money needs to know what fake/x costs
        → add what it costs, in money for a million tokens ⏎ inside the braces of `prices` in [providers.fake] ⏎ "x" = { input = 2.5, output = 10 }
    "#);
}

#[test]
fn a_brace_without_its_end_is_told_once() {
    assert_snapshot!(report("[telegram]\ntoken = { file = \"secrets/telegram\"\n\n[access]\nowners = [\"telegram:12345678\"]\n[agents.ada]\nmodel = \"demo\"\n"), @r#"
    error: a table in braces is not closed
     --> config.toml:2:9
      |
    2 | token = { file = "secrets/telegram"
      |         ^ this `{` has no `}`
      |
      = help: write `token = { file = "secrets/telegram" }`

    1 problem in config.toml.
    "#);
}

#[test]
fn lines_to_write_can_be_pasted() {
    assert_snapshot!(remedies(&[
        "[agents.rose.jobs]\nname = \"a\"\nevery = \"1h\"\nprompt = \"x\"\n",
        "[agents.rose.jobs]\nname = \"a\"\n[agents.rose.jobs]\nname = \"b\"\n",
        "[limits]\ncost_per_day = 2,50\n",
        "[limits]\ntokens_per_day = 1.000.000\n",
        "[limits]\ncost_per_day = $2.50\n",
        "[limits]\ntokens_per_day = 1M\n",
        &format!("[agents.rose]\nmodel = \"dmo\"\n{FAKE}"),
        "default_model = \"Demo\"\n",
        "[access]\nowners = \"telegram:11\"\n",
        "[agents.rose]\nskills = \"tighten\"\n",
        &format!("[agents.rose]\nfallback = \"fake/fake-small\"\n{FAKE}"),
        "[admin]\nlisten = \":7229\"\n",
        "[admin]\nlisten = \"localhost:7229\"\n",
    ]), @r#"
    [agents.rose.jobs] ⏎ name = "a" ⏎ every = "1h" ⏎ prompt = "x"
        `[agents.rose.jobs]` needs double brackets
        → each one is an item of a list, so write `[[agents.rose.jobs]]` before each
    [agents.rose.jobs] ⏎ name = "a" ⏎ [agents.rose.jobs] ⏎ name = "b"
        `[agents.rose.jobs]` needs double brackets
        → each one is an item of a list, so write `[[agents.rose.jobs]]` in both places
    [limits] ⏎ cost_per_day = 2,50
        a number has no commas
        → write `2.50`
    [limits] ⏎ tokens_per_day = 1.000.000
        this is not a number in TOML
        → write `1_000_000`
    [limits] ⏎ cost_per_day = $2.50
        this is not a number in TOML
        → write `2.50`
    [limits] ⏎ tokens_per_day = 1M
        this is not a number in TOML
        → write `1_000_000`
    [agents.rose] ⏎ model = "dmo" ⏎ [providers.fake] ⏎ kind = "openai" ⏎ base_url = "http://127.0.0.1:9/v1/"
        `dmo` does not name a model
        → write `demo`
    default_model = "Demo"
        `Demo` does not name a model
        → write `demo`
    [access] ⏎ owners = "telegram:11"
        `owners` must be a list
        → write `owners = ["telegram:11"]`
    [agents.rose] ⏎ skills = "tighten"
        `skills` must be a list
        → write `skills = ["tighten"]`
    [agents.rose] ⏎ fallback = "fake/fake-small" ⏎ [providers.fake] ⏎ kind = "openai" ⏎ base_url = "http://127.0.0.1:9/v1/"
        `fallback` must be a list
        → write `fallback = ["fake/fake-small"]`
    [admin] ⏎ listen = ":7229"
        `listen` is not an address to listen on
        → write `listen = "127.0.0.1:7229"`
    [admin] ⏎ listen = "localhost:7229"
        `listen` is not an address to listen on
        → write `listen = "127.0.0.1:7229"`
    "#);
    config("[limits]\ncost_per_day = 2.50\ntokens_per_day = 1_000_000\n");
}

#[test]
fn causes_are_named() {
    assert_snapshot!(remedies(&[
        "[users.bob]\nids = [\"telegram:12\"]\n",
        "[budget]\ncost_per_day = 1.0\n",
        "[admin]\nlisten = \"127.0.0.1:70000\"\n",
        "[providers.x]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:70000/v1/\"\n",
        "```toml\ndefault_agent = \"main\"\n```\n",
        "$ cat config.toml\ndefault_agent = \"main\"\n",
        "[people.bob]\nids = \"telegram:12\"\n",
        "[people.bob]\nids = [\"telegram:12\"]\n[[bindings]]\nmatch = \"local\"\nagent = \"main\"\nusers = [\"bob\"]\n",
        "[[bindings]]\nmatch = \"telegram:group:−100123\"\nagent = \"main\"\n",
        "[agents.main]\ntime_zone = \"Europe/Viena\"\n",
        "[agents.main]\ntime_zone = \"new york\"\n",
        "[log]\nfile = \"~/parlor.log\"\n",
        "[telegram]\ntoken = { file = \"~/token\" }\n",
        "[telegram]\ntoken = { env = \"T\" }\napi_url = \"https://api.telegram.org/bot<TOKEN>\"\n",
    ]), @r#"
    [users.bob] ⏎ ids = ["telegram:12"]
        unknown key `users`
        → write `[people.bob]`
    [budget] ⏎ cost_per_day = 1.0
        unknown key `budget`
        → write `[limits]`
    [admin] ⏎ listen = "127.0.0.1:70000"
        `listen` has a port that does not exist
        → write it like `listen = "127.0.0.1:7717"`
    [providers.x] ⏎ kind = "openai" ⏎ base_url = "http://127.0.0.1:70000/v1/"
        `base_url` has a port that does not exist
        → write it like `base_url = "https://api.openai.com/v1/"`
    ```toml ⏎ default_agent = "main" ⏎ ```
        this line is Markdown, not TOML
        → delete this line, and the other one like it
        this line is Markdown, not TOML
        → delete this line, and the other one like it
    $ cat config.toml ⏎ default_agent = "main"
        this line is for the shell, not for this file
        → delete this line
    [people.bob] ⏎ ids = "telegram:12"
        `ids` must be a list
        → write `ids = ["telegram:12"]`
    [people.bob] ⏎ ids = ["telegram:12"] ⏎ [[bindings]] ⏎ match = "local" ⏎ agent = "main" ⏎ users = ["bob"]
        `bob` does not name a person
        → write the ids of [people.bob]: `users = ["telegram:12"]`
    [[bindings]] ⏎ match = "telegram:group:−100123" ⏎ agent = "main"
        `−` (U+2212) is not a hyphen
        → type `-` in its place
    [agents.main] ⏎ time_zone = "Europe/Viena"
        no time zone is called `Europe/Viena`
        → did you mean `Europe/Vienna`?
    [agents.main] ⏎ time_zone = "new york"
        no time zone is called `new york`
        → did you mean `America/New_York`?
    [log] ⏎ file = "~/parlor.log"
        `~` stands for no folder in this file
        → write the whole path, such as `/home/ann/…`, or a path that begins in the folder of config.toml
    [telegram] ⏎ token = { file = "~/token" }
        `~` stands for no folder in this file
        → write the whole path, such as `/home/ann/…`, or a path that begins in the folder of config.toml
    [telegram] ⏎ token = { env = "T" } ⏎ api_url = "https://api.telegram.org/bot<TOKEN>"
        `api_url` has a token in it, or a place for one
        → write only the server, such as `api_url = "https://api.telegram.org"`; the token has a key of its own
    "#);
}

#[test]
fn an_agent_for_defaults_is_a_warning() {
    let draft = drafted("[agents.defaults]\nmodel = \"demo\"\n");
    assert!(draft.problems.is_empty());
    let [warning] = draft.warnings.try_into().expect("one warning");
    assert_eq!(
        warning.message,
        "[agents.defaults] is an agent like any other"
    );
}

#[test]
fn a_token_in_an_address_is_never_shown() {
    let draft = drafted(
        "[telegram]\ntoken = { env = \"T\" }\napi_url = \"https://api.telegram.org/bot123456:AAEhBOweik9ai2o01xx\"\n",
    );
    assert!(!draft.source.text.contains("AAEh"), "{}", draft.source.text);
    let told = draft
        .finish()
        .expect_err("a token in an address")
        .to_string();
    assert!(!told.contains("AAEh"), "{told}");
}
