//! Conversations: each is a transaction of its own, in its place or kept with its agent.

use std::io;
use std::path::Path;

use rusqlite::Transaction;

use super::super::found::FoundConversation;
use super::super::plan::{Goes, Routes};
use super::super::report::{Item, Kind, State};
use super::super::spool::{Kept, Spooled};
use super::{Import, MovingError, Placed, blocking, counted, disk, failed};
use crate::clock::now_ms;
use crate::domain::{AgentUid, PersonId, SessionKey};
use crate::records::imports::{self, Carried, Origin, Row};
use crate::records::transcript::{self, ArrivesIn, SummedUp};
use crate::tenants::Trial;

impl Import<'_> {
    pub(super) async fn conversations(
        &mut self,
        placed: Placed,
        trial: &Trial,
    ) -> Result<(), MovingError> {
        let rules = trial.config.bindings.iter();
        let people = rules.filter_map(|rule| rule.users.as_ref()?.value.first().cloned());
        let people: Vec<PersonId> = people.collect();
        for conversation in &placed.conversations {
            let routes = Routes {
                table: &trial.table,
                group_sessions: trial.config.group_sessions,
                pinned: &self.known.pinned,
                people: &people,
            };
            let id = format!("{}/{}", placed.source_id, conversation.source_id);
            let carried = self.known.carried.get(&(Carried::Conversation, id.clone()));
            let goes = match carried {
                Some(row) => self.goes_again(conversation, row).await?,
                None => match &conversation.place {
                    Ok(place) => routes.goes(place, &placed.id),
                    Err(why) => Goes::Archive(why),
                },
            };
            self.conversation(conversation, (id, goes), &placed).await?;
        }
        Ok(())
    }

    /// Where a conversation goes that was carried before, as far as it was then.
    async fn goes_again(
        &self,
        conversation: &FoundConversation,
        row: &Row,
    ) -> Result<Goes, MovingError> {
        let count = row.stamp.split(' ').next().unwrap_or_default();
        let count: usize = count.parse().unwrap_or(0);
        let (spool, spooled) = (self.spool.clone(), conversation.messages);
        let stamp = blocking(move || {
            let stamp = spool.stamp(spooled, count);
            stamp.map_err(disk(Path::new("messages")))
        });
        let stamp = stamp.await?;
        if spooled.count < count || stamp != row.stamp {
            return Ok(Goes::Nowhere(
                "it was changed there; here it stays as it was carried",
            ));
        }
        Ok(match row.target.parse::<SessionKey>() {
            _ if spooled.count == count => Goes::Nowhere(""),
            Ok(place) if !place.is_internal() => Goes::More { place, from: count },
            _ => Goes::Nowhere("it went on there; here it stays as it was carried"),
        })
    }

    async fn conversation(
        &mut self,
        conversation: &FoundConversation,
        (id, goes): (String, Goes),
        placed: &Placed,
    ) -> Result<(), MovingError> {
        let item = announced(conversation, &goes, placed);
        let uid = match (placed.uid, &goes) {
            (Some(uid), Goes::Place(_) | Goes::More { .. } | Goes::Archive(_))
                if !self.wish.only_look =>
            {
                uid
            }
            _ => {
                self.items.push(item);
                return Ok(());
            }
        };
        let (spool, spooled, origin) = (
            self.spool.clone(),
            conversation.messages,
            self.origin.clone(),
        );
        let (name, summary) = (conversation.name.clone(), &conversation.summary);
        let summary = summary
            .as_ref()
            .map(|summary| (summary.text.clone(), summary.messages));
        let write = move |tx: &Transaction<'_>| {
            let whole = Whole {
                spool: &spool,
                spooled,
                summary: summary.as_ref(),
                name: &name,
            };
            whole.write(tx, &origin, (&id, &goes), uid)
        };
        let item = match self.site.db.write(write).await {
            Ok(arrived) => arrived.told(item, conversation, placed),
            Err(error) => failed(item, &error.to_string()),
        };
        self.items.push(item);
        Ok(())
    }
}

/// The line about a conversation before anything is written.
fn announced(conversation: &FoundConversation, goes: &Goes, placed: &Placed) -> Item {
    let item = Item::new(Kind::Conversation, &conversation.name, State::New);
    let count = conversation.messages.count;
    match goes {
        Goes::Place(place) => item.to(place.to_string()).because(messages(count)),
        Goes::More { place, from } => {
            let more = format!("{} more", messages(count - from));
            item.to(place.to_string()).because(more)
        }
        Goes::Archive(why) => item.because(kept(conversation, placed, why)),
        Goes::Nowhere(why) => {
            let item = Item {
                state: State::Same,
                ..item
            };
            match *why {
                "" => item.because(messages(count)),
                why => item.because(why),
            }
        }
    }
}

fn messages(count: usize) -> String {
    counted(&[(count, "message", "messages")])
}

fn kept(conversation: &FoundConversation, placed: &Placed, why: &str) -> String {
    let messages = messages(conversation.messages.count);
    format!("{messages}, kept with {} for exports: {why}", placed.id)
}

/// The messages of a conversation, ready to be written.
struct Whole<'a> {
    spool: &'a Kept,
    spooled: Spooled,
    summary: Option<&'a (String, usize)>,
    name: &'a str,
}

enum Arrived {
    InPlace,
    Aside,
    NotAtAll,
}

impl Arrived {
    fn told(self, item: Item, conversation: &FoundConversation, placed: &Placed) -> Item {
        match self {
            Arrived::InPlace => Item {
                state: State::Done,
                ..item
            },
            Arrived::Aside => Item {
                state: State::Done,
                target: None,
                ..item.because(kept(
                    conversation,
                    placed,
                    "people have used the place here",
                ))
            },
            Arrived::NotAtAll => Item {
                state: State::Skipped,
                ..item.because("the place has gone on here")
            },
        }
    }
}

impl Whole<'_> {
    fn write(
        &self,
        tx: &Transaction<'_>,
        origin: &Origin,
        (id, goes): (&str, &Goes),
        uid: AgentUid,
    ) -> rusqlite::Result<Arrived> {
        let odd = |error: io::Error| rusqlite::Error::ToSqlConversionFailure(Box::new(error));
        let mut messages = self.spool.read(self.spooled).map_err(odd)?;
        let summary = self.summary.map(|(text, messages)| SummedUp {
            text,
            messages: *messages,
        });
        let aside = ArrivesIn::Archive { name: self.name };
        let now = now_ms();
        let (place, arrived) = match goes {
            Goes::Place(place) => {
                let into = ArrivesIn::Place(place);
                match transcript::arrive(tx, uid, into, (&messages, summary), now)? {
                    Some(place) => (Some(place), Arrived::InPlace),
                    None => {
                        let kept = transcript::arrive(tx, uid, aside, (&messages, None), now)?;
                        (kept, Arrived::Aside)
                    }
                }
            }
            Goes::More { place, from } => {
                let more = messages.split_off(*from);
                let into = ArrivesIn::More(place);
                let place = transcript::arrive(tx, uid, into, (&more, None), now)?;
                (place, Arrived::InPlace)
            }
            Goes::Archive(_) => {
                let kept = transcript::arrive(tx, uid, aside, (&messages, None), now)?;
                (kept, Arrived::InPlace)
            }
            Goes::Nowhere(_) => (None, Arrived::NotAtAll),
        };
        let Some(place) = place else {
            return Ok(Arrived::NotAtAll);
        };
        let row = Row {
            agent: Some(uid),
            target: place.to_string(),
            stamp: self
                .spool
                .stamp(self.spooled, self.spooled.count)
                .map_err(odd)?,
        };
        imports::keep(tx, origin, (Carried::Conversation, id), &row, now)?;
        Ok(arrived)
    }
}
