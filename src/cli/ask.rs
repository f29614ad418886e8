//! `parlor ask`: one question and its answer, for scripts.

use std::io::{IsTerminal, Read, stdin};
use std::time::Duration;

use clap::Args;
use rustix::fs::FileType;
use serde::Serialize;
use serde_json::Value;

use super::chat::{Host, Opening};
use super::color::Style;
use super::interrupts::Interrupts;
use super::json::{Amount, Named};
use super::markdown::Paper;
use super::names::Names;
use super::{Failure, Outcome, chat, data, data_json, database, print};
use crate::agents::ensure_home;
use crate::channels::local::{Audience, Shown, Terminal, new_message};
use crate::commands::{self, Parsed};
use crate::config::{Money, Secrets};
use crate::domain::{MessageId, SessionKey};
use crate::home::{CheckedConfig, Home};
use crate::operations::terminal::{PlaceWish, QUESTIONS, TurnReport};

/// A longer question is no question any more.
const MOST_BYTES: u64 = 1024 * 1024;

#[derive(Args)]
#[command(after_help = "Examples:
  parlor ask \"What time is it?\"
  parlor ask --agent rose --json \"A title for a talk about bees\"
  git diff | parlor ask --agent ada Explain this")]
pub(super) struct Arguments {
    /// The question. Text from a pipe is added below it; - or nothing asks the
    /// piped text alone
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
    /// Print the answer as JSON, with agent, model, tokens, cost and seconds
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let question = question(&arguments.words)?;
    let wish = match &arguments.topic {
        Some(topic) => PlaceWish::This(chat::place("home", Some(topic))?),
        None => PlaceWish::Alone(QUESTIONS.to_owned()),
    };
    ensure_home(home.path())?;
    let mut asking = Asking {
        opening: Opening {
            home,
            agent: arguments.agent,
            audience: Audience::Question,
        },
        wish,
        question,
        begins_anew: arguments.new || arguments.topic.is_none(),
        interrupts: Interrupts::new()?,
    };
    let (host, asked) = asking.ask().await?;
    let told = match asked {
        Ok(answer) if arguments.json => tell_json(&asking.opening.home, answer).await,
        Ok(answer) => tell(answer),
        Err(failure) => Err(failure),
    };
    asking.leave(host).await;
    told
}

/// A question, until it is answered or taken back.
struct Asking {
    opening: Opening,
    wish: PlaceWish,
    question: String,
    begins_anew: bool,
    interrupts: Interrupts,
}

/// The end of a try.
enum Tried {
    Over(Result<Answer, Failure>),
    /// The gateway of another `parlor chat` or `parlor ask` has ended with it.
    Deserted,
    Interrupted(i32),
}

impl Asking {
    /// Asks, and once more where the gateway of another process ends in between.
    async fn ask(&mut self) -> Result<(Host, Result<Answer, Failure>), Failure> {
        let mut before: Option<MessageId> = None;
        loop {
            let (host, mut terminal, place) = tokio::select! {
                opened = self.opening.open(&self.wish, before.is_some()) => opened?,
                // Nothing is asked yet.
                code = self.interrupts.next() => std::process::exit(code),
            };
            // The earlier try is not answered as well.
            if let Some(before) = before.take() {
                host.cancel(&before).await?;
            }
            let message = new_message();
            match self.try_on(&host, &mut terminal, &place, &message).await {
                Tried::Over(asked) => return Ok((host, asked)),
                Tried::Deserted => before = Some(message),
                Tried::Interrupted(code) => self.take_back(host, &message, code).await,
            }
        }
    }

    async fn try_on(
        &mut self,
        host: &Host,
        terminal: &mut Terminal,
        place: &SessionKey,
        message: &MessageId,
    ) -> Tried {
        let asking = ask(
            host,
            terminal,
            (place, message),
            self.question.clone(),
            self.begins_anew,
        );
        tokio::select! {
            biased;
            asked = asking => match asked {
                Ok(Ok(answer)) => Tried::Over(Ok(answer)),
                Ok(Err(_)) if host.ends_with_a_chat() => Tried::Deserted,
                Ok(Err(Deserted(reason))) => Tried::Over(Err(Failure::Failed(reason))),
                Err(failure) => Tried::Over(Err(failure)),
            },
            code = self.interrupts.next() => Tried::Interrupted(code),
        }
    }

    /// Cancels the question for good, and ends the process as the signal would have done.
    async fn take_back(&mut self, host: Host, message: &MessageId, code: i32) {
        let taking_back = async {
            // A line that is just being stored is in the inbox a moment later.
            for wait in [Duration::ZERO, STORED_SOON] {
                tokio::time::sleep(wait).await;
                drop(host.cancel(message).await);
            }
            host.leave_at_once().await;
        };
        tokio::select! {
            () = taking_back => {}
            _ = self.interrupts.next() => {}
        }
        std::process::exit(code);
    }

    /// The answer is told. Others who use the gateway of this process have theirs first.
    async fn leave(&mut self, host: Host) {
        tokio::select! {
            () = host.leave() => {}
            code = self.interrupts.next() => std::process::exit(code),
        }
    }
}

/// The time between a line's way into the gateway and its row in the inbox.
const STORED_SOON: Duration = Duration::from_millis(100);

/// The gateway has ended meanwhile, for this reason.
struct Deserted(String);

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
    let own: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| *word != DASH)
        .collect();
    let is_wanted = words.iter().any(|word| word == DASH);
    let piped = match is_wanted || is_piped(words.is_empty()) {
        true => piped()?,
        false => String::new(),
    };
    let text = format!("{}\n\n{}", own.join(" "), piped.trim_end());
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

/// Stands for the text of a pipe.
const DASH: &str = "-";

/// Whether text comes in besides the words. Beside words only a pipe or a file counts: other inputs,
/// such as those of a service, may never end.
fn is_piped(is_alone: bool) -> bool {
    if is_alone {
        return !stdin().is_terminal();
    }
    let kind = rustix::fs::fstat(stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::RegularFile))
}

fn piped() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    stdin().take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Failure::WrongUse(
            "the piped text has more than 1 MB, which is too much for a question".into(),
        ));
    }
    String::from_utf8(bytes)
        .map_err(|_| Failure::WrongUse("what was piped in is not UTF-8 text".into()))
}

async fn ask(
    host: &Host,
    terminal: &mut Terminal,
    (place, message): (&SessionKey, &MessageId),
    question: String,
    begins_anew: bool,
) -> Result<Result<Answer, Deserted>, Failure> {
    if begins_anew {
        let (fresh, new) = (new_message(), "/new".to_owned());
        if let Err(deserted) = say(host, terminal, (place, &fresh), new).await {
            return Ok(Err(deserted));
        }
    }
    let shown = match say(host, terminal, (place, message), question).await {
        Ok(shown) => shown,
        Err(deserted) => return Ok(Err(deserted)),
    };
    let mut answer = Answer {
        turn: host.turn_of(message).await?,
        ..Answer::default()
    };
    shown
        .into_iter()
        .for_each(|shown| answer.take(shown, message, place));
    Ok(Ok(answer))
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

/// Says a line, and collects what is shown until the line is answered. Lines of others may wait on.
async fn say(
    host: &Host,
    terminal: &mut Terminal,
    (place, message): (&SessionKey, &MessageId),
    line: String,
) -> Result<Vec<Shown>, Deserted> {
    let voice = terminal.voice.clone();
    if !voice.say(place.clone(), message.clone(), line).await {
        return Err(Deserted(host.refusal()));
    }
    let mut all = Vec::new();
    loop {
        tokio::select! {
            biased;
            Some(shown) = terminal.screen.recv() => all.push(shown),
            () = host.answered_line(place, message) => break,
            reason = host.deserted() => return Err(Deserted(reason)),
        }
    }
    while let Ok(shown) = terminal.screen.try_recv() {
        all.push(shown);
    }
    Ok(all)
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
    agent: Option<Named>,
    model: Option<&'a str>,
    tokens: Option<Tokens>,
    /// None without a price.
    cost: Option<Amount>,
    seconds: Option<f64>,
    error: Option<Value>,
}

#[derive(Serialize)]
struct Tokens {
    input: u64,
    /// Part of the input.
    cached: u64,
    output: u64,
}

async fn tell_json(home: &Home, answer: Answer) -> Outcome {
    let outcome = answer.outcome();
    let turn = answer.turn.as_ref();
    let tokens = |turn: &TurnReport| Tokens {
        input: turn.input_tokens,
        cached: turn.cached_tokens,
        output: turn.output_tokens,
    };
    let config = CheckedConfig::load(home, Secrets::WherePresent).ok();
    let config = config.as_ref().map(|checked| &*checked.config);
    let currency = config.map(|config| config.currency.clone());
    let currency = currency.unwrap_or_default();
    let names = Names::load(&database::open(&home.database()).await?, config).await?;
    let told = Told {
        answer: outcome.as_ref().ok().copied(),
        agent: turn
            .and_then(|turn| turn.agent.as_ref())
            .map(|agent| names.agent(agent)),
        model: turn.map(|turn| turn.model.as_str()),
        tokens: turn.map(tokens),
        cost: turn
            .and_then(|turn| turn.cost)
            .map(|cost| Amount::of(Money(cost), &currency)),
        seconds: turn.map(|turn| {
            let ms = u32::try_from(turn.took_ms).unwrap_or(u32::MAX);
            f64::from(ms) / 1000.0
        }),
        error: outcome
            .as_ref()
            .err()
            .map(|reason| print::error_json(reason, 1)),
    };
    data_json(&told)?;
    match outcome {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::told()),
    }
}
