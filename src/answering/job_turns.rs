//! Turns of jobs: where their answers go, and what is not sent.

use crate::domain::{Destination, Internal, JobRun, Said};
use crate::records::inbox::Accepted;

/// The job behind a message.
pub(super) fn job_of(accepted: &Accepted) -> Option<&JobRun> {
    match &accepted.inbound.extras.internal {
        Some(Internal::Job(run)) => Some(run),
        _ => None,
    }
}

/// Where the answer goes: to the place of the message, or to that of the job.
pub(super) fn destination(accepted: &Accepted) -> Destination {
    match job_of(accepted).and_then(|run| run.to.clone()) {
        Some(place) => Destination::of_agent(place),
        None => Destination::of(&accepted.inbound),
    }
}

/// Whether a failure is told where the answer would have gone. Nobody waits for a job that comes
/// again; its owner is told when it is paused.
pub(super) fn tells_failures(accepted: &Accepted) -> bool {
    job_of(accepted).is_none_or(|run| run.is_once)
}

/// Whether an answer of a job means that there is nothing to say.
pub(super) fn is_nothing(accepted: &Accepted, said: &str) -> bool {
    let Some(run) = job_of(accepted) else {
        return false;
    };
    let words = said.trim_matches(|c: char| !c.is_alphanumeric());
    words.eq_ignore_ascii_case("nothing") || run.is_heartbeat && words.is_empty()
}

/// Tells the agent that nobody has just written.
pub(super) fn introduction(run: &JobRun) -> Said {
    let told = match &run.to {
        Some(place) => format!(
            "Your answer is sent to `{place}`. Answer with the single word NOTHING to send nothing."
        ),
        None => "Your answer is kept and sent to nobody.".to_owned(),
    };
    let (what, name) = match run.is_heartbeat {
        true => ("This is your heartbeat", String::new()),
        false => ("This is your job", format!(" “{}”", run.name)),
    };
    Said::gateway(format!(
        "{what}{name}: it is time for what follows. Nobody has just written, and nobody can answer a question now. {told}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Addressed, AgentUid, Extras, Inbound, MessageId, Origin};

    fn accepted(is_heartbeat: bool) -> Accepted {
        let run = JobRun {
            job: Some(1),
            slot: 2,
            name: "plan".into(),
            agent: AgentUid(uuid::Uuid::nil()),
            to: "telegram:topic:-100:7".parse().ok(),
            is_once: false,
            is_heartbeat,
            read: 0,
            most: None,
        };
        let inbound = Inbound {
            update_id: "1".into(),
            origin: Origin::new(
                "cron:rose:plan".parse().unwrap(),
                "local:jobs".parse().unwrap(),
            ),
            person_name: "plan".into(),
            text: "Plan.".into(),
            addressed: Addressed::Privately,
            message: MessageId(String::new()),
            sent_at: 0,
            extras: Extras {
                internal: Some(Internal::Job(run)),
                ..Extras::default()
            },
        };
        Accepted::new(1, inbound)
    }

    #[test]
    fn nothing_is_nothing_and_words_are_words() {
        let check = |is_heartbeat, said: &str, expected| {
            assert_eq!(
                is_nothing(&accepted(is_heartbeat), said),
                expected,
                "{said:?}"
            );
        };
        for said in [
            "NOTHING",
            "nothing",
            "**NOTHING**",
            " Nothing.\n",
            "`NOTHING`",
        ] {
            check(true, said, true);
            check(false, said, true);
        }
        check(true, " ", true);
        check(false, " ", false);
        check(true, "Nothing is on fire, but the mail is full.", false);
    }

    #[test]
    fn the_answer_goes_to_the_place_of_the_job() {
        let to = destination(&accepted(false));
        assert_eq!(to.place().to_string(), "telegram:topic:-100:7");
    }
}
