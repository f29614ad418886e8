//! `parlor ask`: one question and its answer, for scripts.

use std::io::{IsTerminal, Read, stdin};

use clap::Args;
use serde::Serialize;

use super::chat::Host;
use super::color::Style;
use super::markdown::Paper;
use super::{Failure, Outcome, chat, data, data_json, print};
use crate::agents::ensure_home;
use crate::channels::local::{Shown, Terminal, new_message};
use crate::commands::{self, Parsed};
use crate::domain::{MessageId, SessionKey};
use crate::home::Home;
use crate::operations::terminal::{PlaceWish, TurnReport};

/// The room of questions without a topic.
const ROOM: &str = "ask";
/// A longer question is no question any more.
const MOST_BYTES: u64 = 1024 * 1024;

#[derive(Args)]
#[command(after_help = "Examples:
  parlor ask \"What time is it?\"
  parlor ask --agent rose --json \"A title for a talk about bees\"
  git diff | parlor ask --agent ada -")]
pub(super) struct Arguments {
    /// The question; - or nothing reads it from a pipe
    words: Vec<String>,
    /// This agent answers; nothing is pinned
    #[arg(long, short)]
    agent: Option<String>,
    /// Ask in a topic of the terminal chat and go on with its conversation; else each question
    /// stands for itself
    #[arg(long)]
    topic: Option<String>,
    /// Begin a fresh conversation in the topic first
    #[arg(long, requires = "topic")]
    new: bool,
    /// Print one JSON object: answer, agent, model, tokens, cost, seconds, error
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let question = question(&arguments.words)?;
    let wish = match &arguments.topic {
        Some(topic) => PlaceWish::This(chat::place("home", Some(topic))?),
        None => PlaceWish::Alone(ROOM.to_owned()),
    };
    ensure_home(home.path())?;
    let (host, mut terminal, place) = chat::open(&home, wish, arguments.agent.as_deref()).await?;
    let begins_anew = arguments.new || arguments.topic.is_none();
    let asked = ask(&host, &mut terminal, &place, question, begins_anew).await;
    host.leave().await;
    let answer = asked?;
    match arguments.json {
        true => tell_json(answer),
        false => tell(answer),
    }
}

/// What came of the question.
#[derive(Debug, Default)]
struct Answer {
    /// The agent's words.
    said: Option<String>,
    /// The gateway's words: an apology, or the reason why nobody answers.
    excuse: Option<String>,
    turn: Option<TurnReport>,
}

impl Answer {
    /// The answer, or the reason why there is none.
    fn outcome(&self) -> Result<&str, String> {
        let is_answered = self.turn.as_ref().is_some_and(|turn| turn.is_answered);
        match (&self.said, &self.excuse) {
            (Some(said), _) if is_answered => Ok(said),
            (_, Some(excuse)) => Err(excuse.clone()),
            _ => Err("the question was not answered".to_owned()),
        }
    }
}

fn question(words: &[String]) -> Result<String, Failure> {
    let is_piped = match words {
        [] => !stdin().is_terminal(),
        [dash] => dash == "-",
        _ => false,
    };
    let text = if is_piped {
        let mut text = String::new();
        stdin().take(MOST_BYTES).read_to_string(&mut text)?;
        text
    } else {
        words.join(" ")
    };
    match text.trim() {
        "" => Err(Failure::WrongUse(
            "nothing was asked. Write the question behind `parlor ask`, or pipe it in".into(),
        )),
        text if commands::parse(text) != Parsed::Talk => Err(Failure::WrongUse(format!(
            "`{}` is a command of the chat, and `parlor ask` asks agents. Use `parlor chat`",
            text.split_whitespace().next().unwrap_or_default()
        ))),
        text => Ok(text.to_owned()),
    }
}

async fn ask(
    host: &Host,
    terminal: &mut Terminal,
    place: &SessionKey,
    question: String,
    begins_anew: bool,
) -> Result<Answer, Failure> {
    if begins_anew {
        say(host, terminal, place, "/new".to_owned()).await?;
    }
    let (message, shown) = say(host, terminal, place, question).await?;
    let mut answer = Answer {
        turn: host.turn_of(&message).await?,
        ..Answer::default()
    };
    shown
        .into_iter()
        .for_each(|shown| answer.take(shown, &message, place));
    Ok(answer)
}

impl Answer {
    /// Answers to questions of an earlier process are none of this question's.
    fn take(&mut self, shown: Shown, asked: &MessageId, here: &SessionKey) {
        match shown {
            Shown::Text { question, text, .. } if question.as_ref() == Some(asked) => {
                self.said.get_or_insert_default().push_str(&text);
            }
            Shown::Whole(whole) if whole.question.as_ref() == Some(asked) => match whole.speaker {
                Some(_) => self.said = Some(whole.text),
                None => self.excuse = Some(whole.text),
            },
            // Remarks and refusals name no question.
            Shown::Whole(whole)
                if whole.question.is_none() && whole.speaker.is_none() && whole.place == *here =>
            {
                self.excuse.get_or_insert(whole.text);
            }
            _ => {}
        }
    }
}

/// Says a line, and collects what is shown until everything is answered.
async fn say(
    host: &Host,
    terminal: &mut Terminal,
    place: &SessionKey,
    line: String,
) -> Result<(MessageId, Vec<Shown>), Failure> {
    let message = new_message();
    let voice = terminal.voice.clone();
    if !voice.say(place.clone(), message.clone(), line).await {
        return Err(Failure::Failed("the gateway takes no more messages".into()));
    }
    let mut all = Vec::new();
    loop {
        tokio::select! {
            biased;
            Some(shown) = terminal.screen.recv() => all.push(shown),
            reason = host.deserted() => return Err(Failure::Failed(reason)),
            () = host.answered() => break,
        }
    }
    while let Ok(shown) = terminal.screen.try_recv() {
        all.push(shown);
    }
    Ok((message, all))
}

/// The answer as it was written, or drawn where a person looks at it.
fn tell(answer: Answer) -> Outcome {
    let said = match answer.outcome() {
        Ok(said) => said,
        Err(reason) => return Err(Failure::Failed(reason)),
    };
    if !print::is_seen() {
        data(format_args!("{}", said.trim_end()));
        return Ok(());
    }
    let paper = Paper {
        style: Style::for_stdout(),
        width: print::columns().saturating_sub(1),
    };
    let lines = paper.draw(said, None);
    print::piece(&format!("{}\n", lines.join("\n")));
    Ok(())
}

/// The object of `--json`. Every key is always there.
#[derive(Serialize)]
struct Told<'a> {
    answer: Option<&'a str>,
    agent: Option<String>,
    model: Option<&'a str>,
    tokens: Option<Tokens>,
    /// In the money of the config's prices; null without a price.
    cost: Option<String>,
    seconds: Option<f64>,
    error: Option<String>,
}

#[derive(Serialize)]
struct Tokens {
    input: u64,
    /// Part of the input.
    cached: u64,
    output: u64,
}

fn tell_json(answer: Answer) -> Outcome {
    let outcome = answer.outcome();
    let turn = answer.turn.as_ref();
    let tokens = |turn: &TurnReport| Tokens {
        input: turn.input_tokens,
        cached: turn.cached_tokens,
        output: turn.output_tokens,
    };
    let told = Told {
        answer: outcome.as_ref().ok().copied(),
        agent: turn
            .and_then(|turn| turn.agent.as_ref())
            .map(ToString::to_string),
        model: turn.map(|turn| turn.model.as_str()),
        tokens: turn.map(tokens),
        cost: turn
            .and_then(|turn| turn.cost)
            .map(|cost| format!("{}.{:06}", cost / 1_000_000, cost % 1_000_000)),
        seconds: turn.map(|turn| {
            let ms = u32::try_from(turn.took_ms).unwrap_or(u32::MAX);
            f64::from(ms) / 1000.0
        }),
        error: outcome.as_ref().err().cloned(),
    };
    data_json(&told)?;
    match outcome {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::told()),
    }
}
