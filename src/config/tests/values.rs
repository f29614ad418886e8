//! Checked values, and reports about values with the right form but a wrong meaning.

use insta::assert_snapshot;

use super::{config, drafted, report};
use crate::config::{ModelSettings, Money, Reasoning, Transport, Vision};
use crate::domain::{AgentId, Role};

/// S0.7
#[test]
fn without_an_agents_table_there_is_main() {
    let config = config("group_sessions = \"shared\"\n");
    let ids: Vec<_> = config
        .agents
        .iter()
        .map(|agent| agent.id.as_str())
        .collect();
    assert_eq!(ids, ["main"]);
    assert_eq!(config.default_agent, AgentId::main());
}

#[test]
fn agents_keep_their_order_and_main_comes_first_when_not_listed() {
    let config = config("[agents.zoe]\n[agents.adam]\n");
    let ids: Vec<_> = config
        .agents
        .iter()
        .map(|agent| agent.id.as_str())
        .collect();
    assert_eq!(ids, ["main", "zoe", "adam"]);
    assert_eq!(config.agents[0].span, None);
    assert_eq!(config.agents[1].span, Some(8..11));
}

#[test]
fn a_currency_is_three_capital_letters() {
    assert_eq!(config("").currency.to_string(), "USD");
    assert_eq!(config("currency = \"EUR\"\n").currency.to_string(), "EUR");
    assert_snapshot!(report("currency = \"euro\"\n"), @r#"
    error: `currency` is not the code of a currency
     --> config.toml:1:12
      |
    1 | currency = "euro"
      |            ^^^^^^ expected three capital letters
      |
      = help: write it like `currency = "EUR"`

    1 problem in config.toml.
    "#);
}

#[test]
fn a_name_that_is_no_address_shows_one() {
    assert_snapshot!(report("[telegram]\ntoken = { env = \"T\" }\napi_url = \"telegram\"\n"), @r#"
    error: `api_url` is not a web address
     --> config.toml:3:11
      |
    3 | api_url = "telegram"
      |           ^^^^^^^^^^ expected an address that begins with https://
      |
      = help: write it like `api_url = "https://api.telegram.org"`

    1 problem in config.toml.
    "#);
}

#[test]
fn plain_http_to_another_machine_is_refused() {
    let text = "[telegram]\ntoken = { env = \"T\" }\napi_url = \"http://api.telegram.org\"\n";
    assert_snapshot!(report(text), @r#"
    error: `api_url` would send secrets in the clear
     --> config.toml:3:11
      |
    3 | api_url = "http://api.telegram.org"
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^ plain http to another machine
      |
      = help: use https://; plain http is only for 127.0.0.1, ::1 and localhost

    1 problem in config.toml.
    "#);
}

#[test]
fn a_provider_elsewhere_needs_a_key() {
    assert_snapshot!(report("[providers.my-router]\nkind = \"openai\"\nbase_url = \"https://router.example.org/v1\"\n"), @r#"
    error: missing key `api_key`
     --> config.toml:1:12
      |
    1 | [providers.my-router]
      |            ^^^^^^^^^ a server on another machine needs `api_key`
      |
      = help: add a line such as `api_key = { env = "MY_ROUTER_API_KEY" }`

    1 problem in config.toml.
    "#);
}

#[test]
fn a_provider_on_this_machine_needs_no_key() {
    let config = config(
        "[providers.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:8080/v1\"\n[providers.ollama]\nkind = \"ollama\"\n",
    );
    assert_eq!(
        config.providers["local"].base_url,
        "http://127.0.0.1:8080/v1/"
    );
    assert_eq!(
        config.providers["ollama"].base_url,
        "http://localhost:11434/"
    );
}

#[test]
fn the_demo_model_is_no_provider() {
    assert_snapshot!(report("default_model = \"gpt\"\n[providers.demo]\nkind = \"ollama\"\n"), @r#"
    error: `gpt` does not name a model
     --> config.toml:1:17
      |
    1 | default_model = "gpt"
      |                 ^^^^^ expected `provider/model` or `demo`
      |
      = help: write it like `openai/gpt-5.4`, or `demo` for the built-in demo model

    error: `demo` is the built-in model and cannot be a provider
     --> config.toml:2:12
      |
    2 | [providers.demo]
      |            ^^^^ a reserved name
      |
      = help: choose another name for this provider

    2 problems in config.toml.
    "#);
}

/// A broken provider is reported once, not again at each of its models.
#[test]
fn a_broken_provider_is_one_problem() {
    assert_snapshot!(report("default_model = \"big/llama\"\n[providers.big]\nkind = \"olama\"\n"), @r#"
    error: `kind` cannot be `olama`
     --> config.toml:3:8
      |
    3 | kind = "olama"
      |        ^^^^^^^ not one of the choices
      |
      = help: did you mean `ollama`? The choices are `openai`, `openai-responses`, `anthropic`, `gemini`, `ollama`

    1 problem in config.toml.
    "#);
}

/// S0.56
#[test]
fn a_binding_to_an_unknown_agent_names_the_nearest() {
    let text = "[agents.rose]\n\n[[bindings]]\nmatch = \"telegram\"\nagent = \"ros\"\n\n[[bindings]]\nmatch = \"local\"\nagent = \"xyz\"\n";
    assert_snapshot!(report(text), @r#"
    error: unknown agent `ros`
     --> config.toml:5:9
      |
    5 | agent = "ros"
      |         ^^^^^ no agent has this id
      |
      = help: did you mean `rose`? If not, add a section [agents.ros]

    error: unknown agent `xyz`
     --> config.toml:9:9
      |
    9 | agent = "xyz"
      |         ^^^^^ no agent has this id
      |
      = help: add a section [agents.xyz], or name an agent of this file: `main`, `rose`

    2 problems in config.toml.
    "#);
}

#[test]
fn a_broken_binding_is_left_out_of_the_draft() {
    let text = "[[bindings]]\nmatch = \"local\"\nagent = \"main\"\nusers = [\"you\"]\n\n[[bindings]]\nmatch = \"telegram\"\nagent = \"main\"\nroles = [7, \"8\"]\n";
    let draft = drafted(text);
    assert_eq!(draft.config.bindings.len(), 1);
    assert_eq!(draft.config.bindings[0].pattern.value, "telegram");
    assert_eq!(
        draft.config.bindings[0].roles.as_ref().unwrap().value,
        [7, 8]
    );
    assert_eq!(draft.problems.len(), 1);
}

#[test]
fn an_owner_is_a_platform_and_a_number() {
    assert_snapshot!(report("[access]\nowners = [\"telegram:12345678\", \"@alice\", 12345678]\n"), @r#"
    error: `@alice` does not name a person
     --> config.toml:2:32
      |
    2 | owners = ["telegram:12345678", "@alice", 12345678]
      |                                ^^^^^^^^ not a person's id
      |
      = help: write the platform and the number, such as `telegram:12345678`; /whoami in the chat shows it

    error: a person's id must be text in quotes
     --> config.toml:2:42
      |
    2 | owners = ["telegram:12345678", "@alice", 12345678]
      |                                          ^^^^^^^^ this is a number
      |
      = help: write `"telegram:12345678"`, if that is the id on Telegram; /whoami in the chat shows it

    2 problems in config.toml.
    "#);
}

/// S2.2
#[test]
fn two_agents_cannot_have_one_name() {
    assert_snapshot!(report("[agents.rose]\nname = \"Rose\"\n\n[agents.violet]\nname = \"ROSE\"\n\n[agents.lily]\nname = \"Main\"\n"), @r#"
    error: two agents answer to `ROSE`
     --> config.toml:5:8
      |
    5 | name = "ROSE"
      |        ^^^^^^ agent `rose` has this name already
      |
      = help: give each agent its own name; an agent also answers to its id

    error: two agents answer to `Main`
     --> config.toml:8:8
      |
    8 | name = "Main"
      |        ^^^^^^ agent `main` has this name already
      |
      = help: give each agent its own name; an agent also answers to its id

    2 problems in config.toml.
    "#);
}

/// S2.18
#[test]
fn a_reserved_word_is_no_agent() {
    assert_snapshot!(report("[agents.internal]\nname = \"Inside\"\n"), @"
    error: `internal` is a reserved word and cannot be an agent id
     --> config.toml:1:9
      |
    1 | [agents.internal]
      |         ^^^^^^^^ not an agent id
      |
      = help: choose another id

    1 problem in config.toml.
    ");
}

#[test]
fn an_agent_id_is_a_slug() {
    let text = "default_agent = \"Night Desk\"\n\n[agents.\"Night Desk\"]\nemoji = \"this is no emoji at all\"\n";
    assert_snapshot!(report(text), @r#"
    error: an agent id has only a-z, 0-9 and single hyphens inside, such as `night-desk`
     --> config.toml:3:9
      |
    3 | [agents."Night Desk"]
      |         ^^^^^^^^^^^^ not an agent id
      |
      = help: write [agents.night-desk] and keep the rest for `name`

    error: `emoji` is empty or too long
     --> config.toml:4:9
      |
    4 | emoji = "this is no emoji at all"
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^ expected 1 to 16 characters in one line
      |
      = help: write it like `emoji = "🌹"`

    2 problems in config.toml.
    "#);
}

#[test]
fn a_webhook_has_an_address_of_ours_by_default() {
    let text = "[telegram]\ntoken = { env = \"T\" }\nmode = \"webhook\"\nwebhook = { url = \"https://bot.example.org/hook/\" }\n";
    let Transport::Webhook(webhook) = config(text).telegram.unwrap().transport else {
        panic!("a webhook is set")
    };
    assert_eq!(
        (webhook.url.as_str(), webhook.listen.to_string().as_str()),
        ("https://bot.example.org/hook", "127.0.0.1:8443")
    );
    assert_eq!(
        config(&text.replace("\"webhook\"", "\"polling\""))
            .telegram
            .unwrap()
            .transport,
        Transport::Polling
    );
}

#[test]
fn a_webhook_needs_addresses_that_can_be_used() {
    let telegram = "[telegram]\ntoken = { env = \"T\" }\nmode = \"webhook\"\n";
    assert_snapshot!(report(telegram), @r#"
    error: `mode = "webhook"` needs an address that Telegram can call
     --> config.toml:3:8
      |
    3 | mode = "webhook"
      |        ^^^^^^^^^ this file has no [telegram.webhook]
      |
      = help: add `[telegram.webhook]` with a line such as `url = "https://bot.example.org/hook"`, or use `mode = "polling"`

    1 problem in config.toml.
    "#);
    let webhook = "[telegram.webhook]\nurl = \"http://bot.example.org/hook\"\nlisten = \"8443\"\n";
    assert_snapshot!(report(&format!("{telegram}{webhook}")), @r#"
    error: `url` would send secrets in the clear
     --> config.toml:5:7
      |
    5 | url = "http://bot.example.org/hook"
      |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ plain http to another machine
      |
      = help: use https://; plain http is only for 127.0.0.1, ::1 and localhost

    error: `listen` is not an address to listen on
     --> config.toml:6:10
      |
    6 | listen = "8443"
      |          ^^^^^^ expected an IP address and a port
      |
      = help: write `listen = "127.0.0.1:8443"`

    2 problems in config.toml.
    "#);
}

/// The door is for this machine, unless the operator means otherwise.
#[test]
fn a_webhook_listens_to_other_machines_only_when_told() {
    let webhook = |lines: &str| {
        format!(
            "[telegram]\ntoken = {{ env = \"T\" }}\nmode = \"webhook\"\n[telegram.webhook]\nurl = \"https://bot.example.org/hook\"\n{lines}"
        )
    };
    assert_snapshot!(report(&webhook("listen = \"0.0.0.0:8443\"\n")), @r#"
    error: `listen` is open to other machines
     --> config.toml:6:10
      |
    6 | listen = "0.0.0.0:8443"
      |          ^^^^^^^^^^^^^^ plain HTTP, for everybody who reaches this address
      |
      = help: write `127.0.0.1` and a port for a reverse proxy on this machine, or add `public = true` if a firewall or a container's network lets only your proxy in

    1 problem in config.toml.
    "#);
    for open in [
        "0.0.0.0:1",
        "[::]:1",
        "93.184.215.14:1",
        "10.0.0.1:1",
        "[::ffff:10.0.0.1]:1",
    ] {
        let listen = format!("listen = \"{open}\"\n");
        assert!(
            report(&webhook(&listen)).contains("is open to other machines"),
            "{open}"
        );
        assert!(report(&webhook(&format!("{listen}public = false\n"))).contains("is open to"));
        let Some(telegram) = config(&webhook(&format!("{listen}public = true\n"))).telegram else {
            panic!("{open} is meant")
        };
        assert!(
            matches!(telegram.transport, Transport::Webhook(hook) if hook.listen.to_string() == open)
        );
    }
    for own in [
        "127.0.0.1:1",
        "127.9.9.9:1",
        "[::1]:1",
        "[::ffff:127.0.0.1]:1",
    ] {
        config(&webhook(&format!("listen = \"{own}\"\n")));
    }
}

/// The same key and the same checks as for a platform.
#[test]
fn a_provider_has_a_proxy_of_its_own() {
    let provider = |lines: &str| format!("[providers.x]\nkind = \"ollama\"\n{lines}");
    let config = config(&provider(
        "base_url = \"https://models.example.org\"\nproxy = \"http://127.0.0.1:3128\"\n",
    ));
    let proxy = config.providers["x"].proxy.as_ref().expect("it is written");
    assert_eq!(proxy.expose(), "http://127.0.0.1:3128");
    assert_snapshot!(report(&provider("proxy = \"http://proxy.example.org:3128\"\n")), @"
    error: `proxy` would read every call
     --> config.toml:3:9
      |
    3 | proxy = *******************************
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ a proxy on another machine, for plain http
      |
      = help: use https:// in `base_url`, or a proxy on this machine

    1 problem in config.toml.
    ");
    assert_snapshot!(report(&provider("proxy = \"http://ann:hunter2@127.0.0.1:3128\"\n")), @r#"
    error: `proxy` has a login in the config file itself
     --> config.toml:3:9
      |
    3 | proxy = ***********************************
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ a secret in plain text, hidden here
      |
      = help: move the whole address to the environment and write `proxy = { env = "OPENAI_PROXY" }`, or to a file

    1 problem in config.toml.
    "#);
}

#[test]
fn a_proxy_is_http_and_its_password_is_not_in_the_file() {
    let telegram =
        |proxy: &str| format!("[telegram]\ntoken = {{ env = \"T\" }}\nproxy = {proxy}\n");
    assert_snapshot!(report(&telegram("\"socks5://127.0.0.1:1080\"")), @r#"
    error: `proxy` is not a proxy that can be used
     --> config.toml:3:9
      |
    3 | proxy = *************************
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^ expected http:// or https://, a host and a port
      |
      = help: write it like `proxy = "http://127.0.0.1:3128"`; other kinds, such as SOCKS, are not supported

    1 problem in config.toml.
    "#);
    assert_snapshot!(report(&telegram("\"http://ann:hunter2@proxy.example.org\"")), @r#"
    error: `proxy` has a login in the config file itself
     --> config.toml:3:9
      |
    3 | proxy = **************************************
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ a secret in plain text, hidden here
      |
      = help: move the whole address to the environment and write `proxy = { env = "TELEGRAM_PROXY" }`, or to a file

    1 problem in config.toml.
    "#);
    assert!(
        config(&telegram("\"http://127.0.0.1:3128\""))
            .telegram
            .unwrap()
            .proxy
            .is_some()
    );
    // The variable is not set here. A missing variable counts only when the gateway starts.
    assert!(
        config(&telegram("{ env = \"TELEGRAM_PROXY\" }"))
            .telegram
            .unwrap()
            .proxy
            .is_none()
    );
}

#[test]
fn a_nickname_without_a_letter_is_refused() {
    assert_snapshot!(report("[telegram]\ntoken = { env = \"T\" }\nnicknames = [\"parlor\", \"…\"]\n"), @r#"
    error: a nickname needs a letter or a digit
     --> config.toml:3:24
      |
    3 | nicknames = ["parlor", "…"]
      |                        ^^^ nothing to listen for
      |
      = help: write what people say to the bot, such as `parlor` or `hey rose`

    1 problem in config.toml.
    "#);
}

/// S3.2
#[test]
fn a_fallback_that_leads_nowhere_is_a_problem() {
    let text = "[providers.openai]\nkind = \"openai\"\napi_key = { env = \"K\" }\n\
                [agents.rose]\nfallback = [\"opnai/gpt-5.4\", \"gpt-5.4\", 7]\n";
    assert_snapshot!(report(text), @r#"
    error: unknown provider `opnai`
     --> config.toml:5:13
      |
    5 | fallback = ["opnai/gpt-5.4", "gpt-5.4", 7]
      |             ^^^^^^^^^^^^^^^ this file has no [providers.opnai]
      |
      = help: did you mean `openai`?

    error: `gpt-5.4` does not name a model
     --> config.toml:5:30
      |
    5 | fallback = ["opnai/gpt-5.4", "gpt-5.4", 7]
      |                              ^^^^^^^^^ expected `provider/model` or `demo`
      |
      = help: write `openai/gpt-5.4`

    error: a model must be text in quotes
     --> config.toml:5:41
      |
    5 | fallback = ["opnai/gpt-5.4", "gpt-5.4", 7]
      |                                         ^ this is a number
      |
      = help: write it like `openai/gpt-5.4`

    3 problems in config.toml.
    "#);
}

/// S3.24
#[test]
fn reading_a_memory_that_is_not_there_names_both_agents() {
    let text = "[agents.rose]\nread_memory_from = [\"mian\", \"rose\", \"ada\", 7]\n[agents.ada]\nmemory = \"off\"\n";
    assert_snapshot!(report(text), @r#"
    error: `rose` cannot read the memory of `mian`
     --> config.toml:2:21
      |
    2 | read_memory_from = ["mian", "rose", "ada", 7]
      |                     ^^^^^^ no agent has this id
      |
      = help: did you mean `main`?

    error: `rose` cannot read the memory of `rose`
     --> config.toml:2:29
      |
    2 | read_memory_from = ["mian", "rose", "ada", 7]
      |                             ^^^^^^ this is the agent itself
      |
      = help: an agent always sees its own memories; delete this name

    error: `rose` cannot read the memory of `ada`
     --> config.toml:2:37
      |
    2 | read_memory_from = ["mian", "rose", "ada", 7]
      |                                     ^^^^^ it has memory = "off"
      |
      = help: delete this name, or set memory = "on" under [agents.ada]

    error: an agent's id must be text in quotes
     --> config.toml:2:44
      |
    2 | read_memory_from = ["mian", "rose", "ada", 7]
      |                                            ^ this is a number

    4 problems in config.toml.
    "#);
}

/// S3.24
#[test]
fn an_agent_without_memory_reads_nobody_elses() {
    assert_snapshot!(report("[agents.ada]\nmemory = \"off\"\nread_memory_from = [\"main\"]\n"), @r#"
    error: `ada` cannot read the memory of `main`
     --> config.toml:3:21
      |
    3 | read_memory_from = ["main"]
      |                     ^^^^^^ the reader has memory = "off"
      |
      = help: delete this name, or set memory = "on" under [agents.ada]

    1 problem in config.toml.
    "#);
}

#[test]
fn settings_of_models_are_checked() {
    let text = "[agents.rose]\ntemperature = 2.5\nmax_tokens = 0\nreasoning = \"hard\"\n";
    assert_snapshot!(report(text), @r#"
    error: `temperature` must be a number from 0 to 2
     --> config.toml:2:15
      |
    2 | temperature = 2.5
      |               ^^^ not such a number
      |
      = help: write it like `temperature = 0.7`

    error: `max_tokens` is too small
     --> config.toml:3:14
      |
    3 | max_tokens = 0
      |              ^ expected 1 or more
      |
      = help: write it like `max_tokens = 4096`, or delete the line

    error: `reasoning` cannot be `hard`
     --> config.toml:4:13
      |
    4 | reasoning = "hard"
      |             ^^^^^^ not one of the choices
      |
      = help: the choices are `none`, `low`, `medium`, `high`

    3 problems in config.toml.
    "#);
}

#[test]
fn what_a_provider_says_about_its_models_is_checked() {
    let text = "[providers.ollama]\nkind = \"ollama\"\nmodels = [\"llama 3\"]\nvision = \"yes\"\ncontext_tokens = 100\n";
    assert_snapshot!(report(text), @r#"
    error: `llama 3` does not name a model
     --> config.toml:3:11
      |
    3 | models = ["llama 3"]
      |           ^^^^^^^^^ not a model's name
      |
      = help: write it like `models = ["gpt-5.4"]`, without the provider

    error: `vision` must be `true`, `false` or a list of models
     --> config.toml:4:10
      |
    4 | vision = "yes"
      |          ^^^^^ this is text
      |
      = help: write it like `vision = ["gpt-5.4"]`

    error: `context_tokens` is too small
     --> config.toml:5:18
      |
    5 | context_tokens = 100
      |                  ^^^ expected 2048 or more
      |
      = help: write it like `context_tokens = 200_000`, or delete the line

    3 problems in config.toml.
    "#);
}

#[test]
fn models_and_their_settings_are_read() {
    let text = "[providers.ollama]\nkind = \"ollama\"\nmodels = [\"llama3:8b\"]\nvision = [\"llava\"]\ncontext_tokens = 16_384\n\
                [agents.rose]\nfallback = [\"ollama/llava\", \"demo\"]\ntemperature = 1\nmax_tokens = 500\nreasoning = \"none\"\n";
    let config = config(text);
    let ollama = &config.providers["ollama"];
    assert_eq!(ollama.models, ["llama3:8b"]);
    assert_eq!(
        (&ollama.vision, ollama.context_tokens),
        (&Vision::These(vec!["llava".into()]), Some(16_384))
    );
    let rose = &config.agents[1];
    assert_eq!(
        rose.fallback
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["ollama/llava", "demo"]
    );
    let settings = ModelSettings {
        temperature: Some(1.0),
        max_tokens: Some(500),
        reasoning: Some(Reasoning::None),
    };
    assert_eq!(rose.settings, settings);
}
/// S4.38
#[test]
fn limits_are_read_and_0_means_none() {
    let config = config(
        "max_running = 7\n[providers.local]\nkind = \"ollama\"\nprices.llama = { input = 0.1, output = 2 }\n\
         [access.limits]\ntokens_per_day = 5\nturns_per_minute = 0\n\
         guest = { messages_per_minute = 3, turns_per_minute = 0 }\nmember = { tokens_per_day = 0 }\n\
         [agents.rose]\nmodel = \"local/llama\"\n\
         limits = { max_minutes = 2, tokens_per_turn = 0, tokens_per_day = 1_000, cost_per_day = 1.5, turns_per_minute = 3 }\n",
    );
    let limits = config.agents[1].limits;
    assert_eq!(
        (
            config.max_running,
            limits.max_steps,
            limits.max_minutes,
            limits.turns_per_minute
        ),
        (Some(7), 40, 2, 3)
    );
    assert_eq!(
        (
            limits.tokens_per_turn,
            limits.budget.day.tokens,
            limits.budget.day.cost
        ),
        (None, Some(1_000), Some(Money(1_500_000)))
    );
    let people = |role| {
        let limits = config.access.limits.of(role);
        (
            limits.messages_per_minute,
            limits.turns_per_minute,
            limits.budget.day.tokens,
            limits.turns_at_once,
        )
    };
    assert_eq!(people(Role::Guest), (3, 0, Some(5), 2));
    assert_eq!(people(Role::Member), (60, 0, None, 8));
    assert_eq!(people(Role::Admin), people(Role::Member));
    assert_eq!(people(Role::Owner), (0, 0, None, 0));
    let price = config
        .price(config.agents[1].model.as_ref().unwrap())
        .unwrap();
    assert_eq!(
        (price.input, price.output, price.cached),
        (Money(100_000), Money(2_000_000), Money(100_000))
    );
}

#[test]
fn limits_that_cannot_be_meant_are_told() {
    let text = "[agents.rose]\nlimits = { max_steps = 0, cost_per_day = 1, tokens_per_hour = 5 }\nmodel = \"local/llama\"\n\
                [providers.local]\nkind = \"ollama\"\nprices = { mistral = { input = -1, output = 1e3 } }\n";
    assert_snapshot!(report(text), @r#"
    error: `max_steps` cannot be 0
     --> config.toml:2:24
      |
    2 | limits = { max_steps = 0, cost_per_day = 1, tokens_per_hour = 5 }
      |                        ^ nothing could ever be done
      |
      = help: write 1 or more, such as `max_steps = 40`, or delete the line

    error: a limit on money needs to know what local/llama costs
     --> config.toml:2:27
      |
    2 | limits = { max_steps = 0, cost_per_day = 1, tokens_per_hour = 5 }
      |                           ^^^^^^^^^^^^ agents under this limit may use that model, and the file has no price for it
      |
      = help: add what it costs, in money for a million tokens
              inside the braces of `prices` in [providers.local]
              "llama" = { input = 2.5, output = 10 }

    error: unknown key `tokens_per_hour`
     --> config.toml:2:45
      |
    2 | limits = { max_steps = 0, cost_per_day = 1, tokens_per_hour = 5 }
      |                                             ^^^^^^^^^^^^^^^ not a key of `limits`
      |
      = help: did you mean `tokens_per_turn`?

    error: `input` must be an amount of money, 0 or more, with at most six decimals
     --> config.toml:6:32
      |
    6 | prices = { mistral = { input = -1, output = 1e3 } }
      |                                ^^ this is below 0
      |
      = help: write it like `input = 2.5`

    error: `output` must be an amount of money, 0 or more, with at most six decimals
     --> config.toml:6:45
      |
    6 | prices = { mistral = { input = -1, output = 1e3 } }
      |                                             ^^^ this is a number with a fraction
      |
      = help: write it like `output = 10`

    5 problems in config.toml.
    "#);
}

#[test]
fn agents_read_each_memory_once_and_know_their_budget() {
    let config = config(
        "[memory]\ndefault_visibility = \"global\"\n[agents.rose]\nrecall_tokens = 5\nread_memory_from = [\"main\", \"main\"]\n",
    );
    assert_eq!(
        config.memory.default_visibility,
        crate::config::DefaultVisibility::Global
    );
    let rose = &config.agents[1].memory;
    assert_eq!(
        (rose.recall, rose.recall_tokens, rose.read_from.as_slice()),
        (true, 5, [AgentId::main()].as_slice())
    );
}

#[test]
fn who_approves_and_for_how_long_is_checked() {
    let text = "[approvals]\nby = \"guest\"\nexpires_minutes = 0\nuntil = 5\n[agents.rose]\nafter_untrusted = \"perhaps\"\ntools = { ask = \"now\" }\n";
    assert_snapshot!(report(text), @r#"
    error: `by` cannot be `guest`
     --> config.toml:2:6
      |
    2 | by = "guest"
      |      ^^^^^^^ not one of the choices
      |
      = help: the choices are `member`, `admin`, `owner`

    error: `expires_minutes` cannot be 0
     --> config.toml:3:19
      |
    3 | expires_minutes = 0
      |                   ^ nothing could ever be done
      |
      = help: write 1 or more, such as `expires_minutes = 60`, or delete the line

    error: unknown key `until`
     --> config.toml:4:1
      |
    4 | until = 5
      | ^^^^^ not a key of [approvals]
      |
      = help: known here: `by`, `expires_minutes`

    error: `after_untrusted` cannot be `perhaps`
     --> config.toml:6:19
      |
    6 | after_untrusted = "perhaps"
      |                   ^^^^^^^^^ not one of the choices
      |
      = help: the choices are `label`, `ask`, `refuse`

    error: `ask` must be a list
     --> config.toml:7:17
      |
    7 | tools = { ask = "now" }
      |                 ^^^^^ this is text
      |
      = help: write `ask = ["now"]`

    5 problems in config.toml.
    "#);
    let config = config("[approvals]\nby = \"owner\"\nexpires_minutes = 99_999\n");
    let rules = config.approvals;
    assert_eq!(rules.by, crate::config::Approver::Owner);
    let week = std::time::Duration::from_secs(7 * 24 * 60 * 60);
    assert_eq!(rules.expire_after, week, "a week is the most");
}
