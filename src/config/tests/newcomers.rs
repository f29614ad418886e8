//! Mistakes of people who come from other formats and programs, each with its remedy.

use insta::assert_snapshot;

use super::{drafted, report};

/// Message and remedy of every problem, for a table.
pub(super) fn remedies(texts: &[&str]) -> String {
    let mut told = String::new();
    for text in texts {
        told += &format!("{}\n", text.trim_end().replace('\n', " ⏎ "));
        let problems = drafted(text).problems;
        assert!(!problems.is_empty(), "{text}");
        for problem in problems {
            let help = problem.help.unwrap_or_default().replace('\n', " ⏎ ");
            told += &format!("    {}\n    → {help}\n", problem.message);
        }
    }
    told
}

/// UX: the shipped file once had this line at its end.
#[test]
fn a_key_of_the_top_below_a_section_is_sent_to_the_top() {
    assert_snapshot!(report("[access]\nowners = []\n\ndefault_model = \"demo\"\n"), @r#"
    error: unknown key `default_model`
     --> config.toml:4:1
      |
    4 | default_model = "demo"
      | ^^^^^^^^^^^^^ not a key of [access]
      |
      = help: `default_model` belongs at the top of the file, above the first [section]

    1 problem in config.toml.
    "#);
}

#[test]
fn bindings_in_single_brackets() {
    let once = "[bindings]\nmatch = \"local\"\nagent = \"main\"\n";
    assert_snapshot!(report(once), @"
    error: `[bindings]` needs double brackets
     --> config.toml:1:1
      |
    1 | [bindings]
      | ^^^^^^^^^^ write `[[bindings]]`
      |
      = help: each one is an item of a list, so write `[[bindings]]` before each

    1 problem in config.toml.
    ");
    let thrice = "[bindings]\nmatch = \"local\"\nagent = \"main\"\n\n[bindings]\nmatch = \"telegram\"\nagent = \"main\"\n\n[bindings] # the last\nmatch = \"discord\"\nagent = \"main\"\n";
    assert_snapshot!(report(thrice), @"
    error: `[bindings]` needs double brackets
     --> config.toml:1:1
      |
    1 | [bindings]
      | ^^^^^^^^^^ write `[[bindings]]`
    ...
    5 | [bindings]
      | ---------- here too
    ...
    9 | [bindings] # the last
      | ---------- here too
      |
      = help: each one is an item of a list, so write `[[bindings]]` in all 3 places

    1 problem in config.toml.
    ");
    let mixed = "[[bindings]]\nmatch = \"local\"\nagent = \"main\"\n\n[bindings]\nmatch = \"telegram\"\nagent = \"main\"\n";
    assert_snapshot!(report(mixed), @"
    error: `[bindings]` needs double brackets
     --> config.toml:5:1
      |
    5 | [bindings]
      | ^^^^^^^^^^ write `[[bindings]]`
      |
      = help: each one is an item of a list, so write `[[bindings]]` before each

    1 problem in config.toml.
    ");
}

#[test]
fn quotes_of_a_word_processor() {
    assert_snapshot!(report("default_agent = “main”\n"), @r#"
    error: curly quotes are not quotes in TOML
     --> config.toml:1:17
      |
    1 | default_agent = “main”
      |                 ^^^^^^ `“` is not `"`
      |
      = help: write straight quotes: `default_agent = "main"`

    1 problem in config.toml.
    "#);
    assert_snapshot!(remedies(&[
        "default_agent = ‘main’\n",
        "default_agent = „main“\n",
        "default_agent = «main»\n",
        "default_agent = `main`\n",
        "default_agent = 「main」\n",
        "default_agent = ＂main＂\n",
        "default_agent = \"main”\n",
        "default_agent = “main\"\n",
        "default_agent = “two words”\n",
        "[access]\nowners = [“telegram:5”]\n",
        "[agents.“rose”]\n",
        "“default_agent” = \"main\"\n",
        "[telegram]\ntoken = { env = “TELEGRAM_BOT_TOKEN” }\n",
        "[telegram]\ntoken = “123456:hunter2”\n",
    ]), @r#"
    default_agent = ‘main’
        curly quotes are not quotes in TOML
        → write straight quotes: `default_agent = "main"`
    default_agent = „main“
        curly quotes are not quotes in TOML
        → write straight quotes: `default_agent = "main"`
    default_agent = «main»
        angle quotes are not quotes in TOML
        → write straight quotes: `default_agent = "main"`
    default_agent = `main`
        slanted quotes are not quotes in TOML
        → write straight quotes: `default_agent = "main"`
    default_agent = 「main」
        corner quotes are not quotes in TOML
        → write straight quotes: `default_agent = "main"`
    default_agent = ＂main＂
        full-width quotes are not quotes in TOML
        → write straight quotes: `default_agent = "main"`
    default_agent = "main”
        curly quotes are not quotes in TOML
        → write straight quotes: `default_agent = "main"`
    default_agent = “main"
        curly quotes are not quotes in TOML
        → write straight quotes: `default_agent = "main"`
    default_agent = “two words”
        curly quotes are not quotes in TOML
        → write straight quotes: `default_agent = "two words"`
    [access] ⏎ owners = [“telegram:5”]
        curly quotes are not quotes in TOML
        → write straight quotes: `"telegram:5"`
    [agents.“rose”]
        curly quotes are not quotes in TOML
        → write `[agents.rose]`
    “default_agent” = "main"
        curly quotes are not quotes in TOML
        → write straight quotes: `default_agent = "main"`
    [telegram] ⏎ token = { env = “TELEGRAM_BOT_TOKEN” }
        curly quotes are not quotes in TOML
        → write straight quotes: `env = "TELEGRAM_BOT_TOKEN"`
    [telegram] ⏎ token = “123456:hunter2”
        curly quotes are not quotes in TOML
        → write straight quotes: `"…"`
    "#);
}

#[test]
fn lines_of_other_languages() {
    assert_snapshot!(remedies(&[
        "default_agent: main\n",
        "default_agent: \"main\"\n",
        "max_running: 5\n",
        "agents:\n  rose:\n    name: Rose\n",
        "[access]\nowners:\n  - telegram:5\n",
        "{\n  \"default_agent\": \"main\"\n}\n",
        "// my agents\n[agents.rose]\n",
        "; my agents\n",
        "export TELEGRAM_BOT_TOKEN=hunter2\n",
        "[telegram]\ntoken: 123456:hunter2\n",
    ]), @r#"
    default_agent: main
        a key and its value are joined by `=`, not by `:`
        → write `default_agent = "main"`
    default_agent: "main"
        a key and its value are joined by `=`, not by `:`
        → write `default_agent = "main"`
    max_running: 5
        a key and its value are joined by `=`, not by `:`
        → write `max_running = 5`
    agents: ⏎   rose: ⏎     name: Rose
        a key and its value are joined by `=`, not by `:`
        → write a section, such as `[agents.rose]`
    [access] ⏎ owners: ⏎   - telegram:5
        a key and its value are joined by `=`, not by `:`
        → write a value, such as `owners = ["telegram:12345678"]`
    { ⏎   "default_agent": "main" ⏎ }
        this is JSON, not TOML
        → write a line for each key, such as `default_agent = "main"`, and a header for each section, such as `[agents.rose]`
    // my agents ⏎ [agents.rose]
        `//` does not begin a comment in TOML
        → begin comments with `#`
    ; my agents
        `;` does not begin a comment in TOML
        → begin comments with `#`
    export TELEGRAM_BOT_TOKEN=hunter2
        this line is for the shell, not for this file
        → run it in the terminal before you start Parlor, or put it into the environment of the service
    [telegram] ⏎ token: 123456:hunter2
        a key and its value are joined by `=`, not by `:`
        → write a value, such as `token = { env = "TELEGRAM_BOT_TOKEN" }`
    "#);
}

#[test]
fn values_without_the_form_of_toml() {
    assert_snapshot!(remedies(&[
        "default_agent = main\n",
        "default_agent =\n",
        "zzz =\n",
        "[access]\nowners = [telegram:5]\n",
        "[access]\nrequire_mention = True\n",
        "[access]\nrequire_mention = no\n",
        "default_model = None\n",
        "max_running = 1,000\n",
        "max_running = 50%\n",
        "max_running = 05\n",
        "[agents.rose]\ntemperature = .5\n",
        "[telegram]\ntoken = 123456:hunter2\n",
        "[telegram]\ntoken = { env = TELEGRAM_BOT_TOKEN }\n",
        "[agents.rose]\nname = \"Rose\nemoji = \"x\"\n",
        "[agents.rose]\nname = Rose\"\n",
        "[agents.rose]\nsystem_prompt = \"\"\"\nBe kind.\n",
        "[agents.rose]\npersonality = \"C:\\path\"\n",
        "[agents.rose]\nname = \"Rose\",\n",
        "[access]\nowners = [\"telegram:5\" \"telegram:6\"]\n",
        "[access]\nowners = [\"telegram:5\",\nrequire_mention = true\n",
    ]), @r#"
    default_agent = main
        text needs quotes
        → write `default_agent = "main"`
    default_agent =
        a value is missing
        → write a value, such as `default_agent = "main"`, or delete the line
    zzz =
        a value is missing
        → write a value, such as `key = "text"`, or delete the line
    [access] ⏎ owners = [telegram:5]
        text needs quotes
        → write `"telegram:5"`
    [access] ⏎ require_mention = True
        `True` is not a value in TOML
        → write `require_mention = true`
    [access] ⏎ require_mention = no
        `no` is not a value in TOML
        → write `require_mention = false`
    default_model = None
        TOML has no `None`
        → delete the line: a key that is not in the file is not set
    max_running = 1,000
        a number has no commas
        → write `1_000`
    max_running = 50%
        this is neither a number nor text
        → write a plain number, or put quotes around text: `max_running = "50%"`
    max_running = 05
        a number begins with a zero
        → delete the zero, or put quotes around text
    [agents.rose] ⏎ temperature = .5
        a number needs a digit on both sides of its point
        → write a number such as `0.5` or `5.0`
    [telegram] ⏎ token = 123456:hunter2
        text needs quotes
        → write a value, such as `token = { env = "TELEGRAM_BOT_TOKEN" }`
    [telegram] ⏎ token = { env = TELEGRAM_BOT_TOKEN }
        text needs quotes
        → write a value, such as `env = "TELEGRAM_BOT_TOKEN"`
    [agents.rose] ⏎ name = "Rose ⏎ emoji = "x"
        the closing quote is missing
        → write `name = "Rose"`
    [agents.rose] ⏎ name = Rose"
        the opening quote is missing
        → write `name = "Rose"`
    [agents.rose] ⏎ system_prompt = """ ⏎ Be kind.
        a text is never closed
        → put """ where the text ends
    [agents.rose] ⏎ personality = "C:\path"
        a `\` inside "…" needs a second one
        → write `\\`, or put the text in single quotes: `'C:\folder'`
    [agents.rose] ⏎ name = "Rose",
        something is left over at the end of the line
        → write one key in each line, without a comma or a semicolon at its end; a quote inside a text is written as `\"`
    [access] ⏎ owners = ["telegram:5" "telegram:6"]
        a comma is missing in the list
        → write a comma between two items: `["one", "two"]`
    [access] ⏎ owners = ["telegram:5", ⏎ require_mention = true
        a list is not closed
        → put `]` where the list ends
    "#);
}

#[test]
fn sections_without_the_form_of_toml() {
    assert_snapshot!(remedies(&[
        "[access\ndms = \"open\"\n",
        "[[bindings]\nmatch = \"local\"\n",
        "access]\ndms = \"open\"\n",
        "[agents.Night Desk]\nname = \"x\"\n",
        "[agents.rose] name = \"x\"\n",
        "default_agent\n",
        "default_agent \"main\"\n",
        "[agents.rose]\nemoji \"🌹\"\n",
        "default agent = \"main\"\n",
        "default_agent == \"main\"\n",
        "= 5\n",
    ]), @r#"
    [access ⏎ dms = "open"
        the section's header is not closed
        → write `[access]`
    [[bindings] ⏎ match = "local"
        the section's header is not closed
        → write `[[bindings]]`
    access] ⏎ dms = "open"
        the opening bracket of a section is missing
        → write `[access]`
    [agents.Night Desk] ⏎ name = "x"
        a section's name has no spaces
        → write a name such as `[agents.night-desk]`
    [agents.rose] name = "x"
        a section's header has a line of its own
        → write this in the next line
    default_agent
        a key has no value
        → write a value, such as `default_agent = "main"`, or delete the line
    default_agent "main"
        a key has no value
        → write `default_agent = "main"`
    [agents.rose] ⏎ emoji "🌹"
        a key has no value
        → write `emoji = "🌹"`
    default agent = "main"
        a key is a single word
        → write the key without spaces, such as `default_agent = "main"`
    default_agent == "main"
        one `=` is enough
        → delete it
    = 5
        a key is missing before `=`
        → write a key, or delete the line
    "#);
}

#[test]
fn what_is_there_twice_is_shown_in_both_places() {
    assert_snapshot!(report("[access]\ndms = \"open\"\n\n[agents.rose]\n\n[access]\ndms = \"closed\"\ngroups = \"open\"\n"), @"
    error: `[access]` is there twice
     --> config.toml:6:1
      |
    1 | [access]
      | -------- the first one
    ...
    6 | [access]
      | ^^^^^^^^ the second one
      |
      = help: move the lines below it to the first one, and delete this header

    1 problem in config.toml.
    ");
    assert_snapshot!(report("[access]\ndms = \"open\"\ngroups = \"open\"\ndms = \"closed\"\n"), @r#"
    error: `dms` is set twice
     --> config.toml:4:1
      |
    2 | dms = "open"
      | --- the first one
    3 | groups = "open"
    4 | dms = "closed"
      | ^^^ the second one
      |
      = help: delete one of the two lines

    1 problem in config.toml.
    "#);
}

#[test]
fn an_agent_is_a_section() {
    assert_snapshot!(report("agents.rose = \"Rose\"\n"), @r#"
    error: `rose` must be a section
     --> config.toml:1:15
      |
    1 | agents.rose = "Rose"
      |               ^^^^^^ this is text
      |
      = help: write
              [agents.rose]
              name = "Rose"

    1 problem in config.toml.
    "#);
    assert_snapshot!(remedies(&[
        "[agents]\nrose = 5\n",
        "[[agents.rose]]\nname = \"Rose\"\n",
        "[rose]\nname = \"Rose\"\n",
        "[openai]\nkind = \"openai\"\n",
        "bindings = [\"local\"]\n",
        "bindings = \"local\"\n",
        "agents = [\"rose\"]\n",
    ]), @r#"
    [agents] ⏎ rose = 5
        `rose` must be a section
        → write `[agents.rose]`, with its keys below
    [[agents.rose]] ⏎ name = "Rose"
        `rose` must be a section
        → write single brackets: `[agents.rose]`
    [rose] ⏎ name = "Rose"
        unknown key `rose`
        → an agent is written as [agents.rose], a provider as [providers.rose]
    [openai] ⏎ kind = "openai"
        unknown key `openai`
        → a provider is written as [providers.openai]
    bindings = ["local"]
        each of `bindings` must be a table
        → write it as `[[bindings]]`, with its keys below
    bindings = "local"
        `bindings` must be a list of sections
        → write `[[bindings]]`, with its keys below
    agents = ["rose"]
        `agents` must be a section for each name
        → write it like `[agents.rose]`
    "#);
}

/// A variable's name with the shell's dollar before it is no secret.
#[test]
fn a_dollar_belongs_to_the_shell() {
    assert_snapshot!(report("[telegram]\ntoken = { env = \"$TELEGRAM_BOT_TOKEN\" }\n"), @r#"
    error: `env` takes the variable's name without `$`
     --> config.toml:2:17
      |
    2 | token = { env = "$TELEGRAM_BOT_TOKEN" }
      |                 ^^^^^^^^^^^^^^^^^^^^^ the name alone is enough
      |
      = help: write `env = "TELEGRAM_BOT_TOKEN"`

    1 problem in config.toml.
    "#);
    assert_snapshot!(report("[telegram]\ntoken = \"${TELEGRAM_BOT_TOKEN}\"\n"), @r#"
    error: `token` is text, and variables are not filled in
     --> config.toml:2:9
      |
    2 | token = "${TELEGRAM_BOT_TOKEN}"
      |         ^^^^^^^^^^^^^^^^^^^^^^^ this is not the value of TELEGRAM_BOT_TOKEN
      |
      = help: write `token = { env = "TELEGRAM_BOT_TOKEN" }`

    1 problem in config.toml.
    "#);
}

#[test]
fn servers_by_their_names() {
    assert_snapshot!(report("[providers.router]\nkind = \"openrouter\"\n"), @r#"
    error: `kind` cannot be `openrouter`
     --> config.toml:2:8
      |
    2 | kind = "openrouter"
      |        ^^^^^^^^^^^^ OpenRouter speaks OpenAI's dialect
      |
      = help: write
              kind = "openai"
              base_url = "https://openrouter.ai/api/v1/"
              api_key = { env = "OPENROUTER_API_KEY" }

    1 problem in config.toml.
    "#);
    assert_snapshot!(report("[providers.groq]\napi_key = { env = \"K\" }\n"), @r#"
    error: missing key `kind`
     --> config.toml:1:12
      |
    1 | [providers.groq]
      |            ^^^^ a provider needs `kind`
      |
      = help: add below [providers.groq]
              kind = "openai"
              base_url = "https://api.groq.com/openai/v1/"

    1 problem in config.toml.
    "#);
    assert_snapshot!(report("default_model = \"mistral/large\"\n"), @r#"
    error: unknown provider `mistral`
     --> config.toml:1:17
      |
    1 | default_model = "mistral/large"
      |                 ^^^^^^^^^^^^^^^ this file has no [providers.mistral]
      |
      = help: add this section
              [providers.mistral]
              kind = "openai"
              base_url = "https://api.mistral.ai/v1/"
              api_key = { env = "MISTRAL_API_KEY" }

    1 problem in config.toml.
    "#);
    assert_snapshot!(report("[providers.deepseek]\nkind = \"openai\"\napi_key = { env = \"K\" }\n"), @r#"
    error: DeepSeek needs a `base_url`
     --> config.toml:1:12
      |
    1 | [providers.deepseek]
      |            ^^^^^^^^ without it, OpenAI would get these messages and this key
      |
      = help: add the line `base_url = "https://api.deepseek.com/"`

    1 problem in config.toml.
    "#);
    assert_snapshot!(remedies(&[
        "[providers.x]\nkind = \"groq\"\n",
        "[providers.x]\nkind = \"Mistral\"\n",
        "[providers.x]\nkind = \"deepseek\"\n",
        "[providers.x]\nkind = \"lm-studio\"\n",
        "[providers.x]\nkind = \"vllm\"\n",
        "[providers.x]\nkind = \"llama.cpp\"\n",
        "[providers.x]\nkind = \"claude\"\n",
        "[providers.x]\nkind = \"OpenAI\"\n",
        "[providers.x]\nkind = \"zzz\"\n",
        "[providers.x]\n",
        "[providers.anthropic]\n",
        "default_model = \"anthropic/claude-opus-4.6\"\n",
        "default_model = \"zzz/large\"\n",
    ]), @r#"
    [providers.x] ⏎ kind = "groq"
        `kind` cannot be `groq`
        → write ⏎ kind = "openai" ⏎ base_url = "https://api.groq.com/openai/v1/" ⏎ api_key = { env = "GROQ_API_KEY" }
    [providers.x] ⏎ kind = "Mistral"
        `kind` cannot be `Mistral`
        → write ⏎ kind = "openai" ⏎ base_url = "https://api.mistral.ai/v1/" ⏎ api_key = { env = "MISTRAL_API_KEY" }
    [providers.x] ⏎ kind = "deepseek"
        `kind` cannot be `deepseek`
        → write ⏎ kind = "openai" ⏎ base_url = "https://api.deepseek.com/" ⏎ api_key = { env = "DEEPSEEK_API_KEY" }
    [providers.x] ⏎ kind = "lm-studio"
        `kind` cannot be `lm-studio`
        → write ⏎ kind = "openai" ⏎ base_url = "http://127.0.0.1:1234/v1/"
    [providers.x] ⏎ kind = "vllm"
        `kind` cannot be `vllm`
        → write ⏎ kind = "openai" ⏎ base_url = "http://127.0.0.1:8000/v1/"
    [providers.x] ⏎ kind = "llama.cpp"
        `kind` cannot be `llama.cpp`
        → write ⏎ kind = "openai" ⏎ base_url = "http://127.0.0.1:8080/v1/"
    [providers.x] ⏎ kind = "claude"
        `kind` cannot be `claude`
        → write `kind = "anthropic"`
    [providers.x] ⏎ kind = "OpenAI"
        `kind` cannot be `OpenAI`
        → write `kind = "openai"`
    [providers.x] ⏎ kind = "zzz"
        `kind` cannot be `zzz`
        → the choices are `openai`, `openai-responses`, `anthropic`, `gemini`, `ollama`
    [providers.x]
        missing key `kind`
        → add a line such as `kind = "openai"`
    [providers.anthropic]
        missing key `kind`
        → add below [providers.anthropic] ⏎ kind = "anthropic" ⏎ api_key = { env = "ANTHROPIC_API_KEY" }
    default_model = "anthropic/claude-opus-4.6"
        unknown provider `anthropic`
        → add this section ⏎ [providers.anthropic] ⏎ kind = "anthropic" ⏎ api_key = { env = "ANTHROPIC_API_KEY" }
    default_model = "zzz/large"
        unknown provider `zzz`
        → declare it in a section [providers.zzz]
    "#);
}

/// The lines of a remedy are pasted as they are, so they must be right.
#[test]
fn pasted_lines_are_accepted() {
    for name in [
        "openrouter",
        "groq",
        "mistral",
        "deepseek",
        "lm-studio",
        "vllm",
        "llama-cpp",
        "openai",
        "anthropic",
        "gemini",
        "ollama",
    ] {
        let text = format!("default_model = \"{name}/m\"\n");
        let [problem] = drafted(&text).problems.try_into().expect("one problem");
        let help = problem.help.expect("it has a remedy");
        let (_, lines) = help.split_once('\n').expect("it has lines to paste");
        super::config(&format!("{text}{lines}\n"));
    }
}

/// The quote belongs before the comment, and before the brackets around the text.
#[test]
fn a_quote_that_is_missing_before_a_comment_or_a_bracket() {
    assert_snapshot!(report("default_agent = \"main   # the one\n[agents.main]\n"), @r#"
    error: the closing quote is missing
     --> config.toml:1:22
      |
    1 | default_agent = "main   # the one
      |                      ^ expected "
      |
      = help: write `default_agent = "main"   # the one`

    1 problem in config.toml.
    "#);
    assert_snapshot!(remedies(&[
        "[agents.main]\nname = \"Rose # who\nemoji = \"x\"\n",
        "[agents.main]\nname = 'Rose\n",
        "[agents.main]\nname = \"Rose #1\n",
        "[telegram]\ntoken = { env = \"TELEGRAM_BOT_TOKEN }\n",
        "[access]\nowners = [\"telegram:11]  # me\n",
    ]), @r#"
    [agents.main] ⏎ name = "Rose # who ⏎ emoji = "x"
        the closing quote is missing
        → write `name = "Rose" # who`
    [agents.main] ⏎ name = 'Rose
        the closing quote is missing
        → write `name = 'Rose'`
    [agents.main] ⏎ name = "Rose #1
        the closing quote is missing
        → write `name = "Rose #1"`
    [telegram] ⏎ token = { env = "TELEGRAM_BOT_TOKEN }
        the closing quote is missing
        → write a value, such as `token = { env = "TELEGRAM_BOT_TOKEN" }`
    [access] ⏎ owners = ["telegram:11]  # me
        the closing quote is missing
        → write `owners = ["telegram:11"]  # me`
    "#);
}

#[test]
fn names_that_other_programs_have_for_a_key() {
    assert_snapshot!(remedies(&[
        "model = \"openai/gpt-5\"\n",
        "agent = \"main\"\n",
        "[telegram]\nbot_token = { env = \"X\" }\n",
        "[discord]\napi_token = { env = \"X\" }\n",
        "[providers.x]\ntype = \"openai\"\nurl = \"https://x.org/v1/\"\nkey = { env = \"X\" }\n",
        "[agent.ada]\nname = \"Ada\"\n",
        "[provider.openai]\nkind = \"openai\"\n",
        "[binding]\nmatch = \"local\"\n",
        "[agents.main]\nllm = \"a/b\"\n",
    ]), @r#"
    model = "openai/gpt-5"
        unknown key `model`
        → did you mean `default_model`? `model` belongs under [agents.<id>]
    agent = "main"
        unknown key `agent`
        → did you mean `default_agent`? `agent` belongs under [hooks.<name>] or [[bindings]] or [[route_tests]]
    [telegram] ⏎ bot_token = { env = "X" }
        unknown key `bot_token`
        → did you mean `token`?
    [discord] ⏎ api_token = { env = "X" }
        unknown key `api_token`
        → did you mean `token`?
    [providers.x] ⏎ type = "openai" ⏎ url = "https://x.org/v1/" ⏎ key = { env = "X" }
        unknown key `key`
        → did you mean `api_key`?
        unknown key `type`
        → did you mean `kind`?
        unknown key `url`
        → did you mean `base_url`? `url` belongs under [telegram.webhook] or [admin]
    [agent.ada] ⏎ name = "Ada"
        unknown key `agent`
        → write `[agents.ada]`
    [provider.openai] ⏎ kind = "openai"
        unknown key `provider`
        → write `[providers.openai]`
    [binding] ⏎ match = "local"
        unknown key `binding`
        → write `[[bindings]]`
    [agents.main] ⏎ llm = "a/b"
        unknown key `llm`
        → did you mean `model`?
    "#);
}

/// One server, one variable, wherever it is named.
#[test]
fn a_known_server_has_one_variable_for_its_key() {
    let told = remedies(&[
        "[providers.openrouter]\nkind = \"openai\"\nbase_url = \"https://openrouter.ai/api/v1/\"\napi_key = \"sk-or-v1-0123456789\"\n",
        "[providers.or]\nkind = \"openai\"\nbase_url = \"https://openrouter.ai/api/v1\"\n",
        "[providers.openrouter]\nkind = \"openrouter\"\n",
        "default_model = \"openrouter/x\"\n",
    ]);
    assert_eq!(told.matches("OPENROUTER_API_KEY").count(), 4, "{told}");
    assert_eq!(told.matches("_API_KEY").count(), 4, "{told}");
}

/// The header of a section is still behind its `#`, and a key below is not.
#[test]
fn a_header_that_is_commented_out_is_named() {
    assert_snapshot!(report("default_agent = \"main\"\n\n# [telegram]\ntoken = { env = \"TELEGRAM_BOT_TOKEN\" }\n"), @r#"
    error: unknown key `token`
     --> config.toml:4:1
      |
    4 | token = { env = "TELEGRAM_BOT_TOKEN" }
      | ^^^^^ its header `[telegram]` in line 3 is commented out
      |
      = help: take the `#` off line 3, so that it is `[telegram]`; or put a `#` before this line too

    1 problem in config.toml.
    "#);
    assert_snapshot!(remedies(&[
        "[agents.main]\n#[access]\n# who owns it\nowners = [\"telegram:11\"]\n",
        "[agents.main]\n# [[bindings]]\nmatch = \"local\"\n",
    ]), @r#"
    [agents.main] ⏎ #[access] ⏎ # who owns it ⏎ owners = ["telegram:11"]
        unknown key `owners`
        → take the `#` off line 2, so that it is `[access]`; or put a `#` before this line too
    [agents.main] ⏎ # [[bindings]] ⏎ match = "local"
        unknown key `match`
        → take the `#` off line 2, so that it is `[[bindings]]`; or put a `#` before this line too
    "#);
    for other in [
        "# [telegram]\n[agents.main]\ntoken = { env = \"X\" }\n",
        "# see [telegram] in the book\ntoken = { env = \"X\" }\n",
    ] {
        let told = remedies(&[other]);
        assert!(!told.contains("take the `#` off"), "{told}");
    }
}

/// Another rule wins over a role in [people].
#[test]
fn a_role_without_effect_is_told() {
    let check = |text: &str, expected: &str| {
        let warnings = drafted(text).warnings.into_iter().map(|warning| {
            let help = warning.help.unwrap_or_default();
            format!("{}: {} → {help}", warning.message, warning.label)
        });
        assert_eq!(warnings.collect::<Vec<_>>().join("\n"), expected);
    };
    let ann = "[telegram]\ntoken = { env = \"X\" }\n[access]\nowners = [\"telegram:11\"]\n[people.ann]\nids = [\"telegram:11\"]\n";
    check(
        &format!("{ann}role = \"member\"\n"),
        "`role = \"member\"` of ann has no effect: telegram:11 is in `owners` of [access] → take `role` out, or `telegram:11` out of `owners`",
    );
    check(&format!("{ann}role = \"owner\"\n"), "");
    check(ann, "");
}
