//! Plain values for every other module. Uses no other module.

mod extras;
mod ids;
mod labels;
mod marks;
mod message;
mod origin;
mod outgoing;
mod role;
mod said;
mod session_key;
mod user_error;
mod zone;

pub use extras::{Attachment, Extras, FileRef, Internal, JobRun, Note, ReplyHandle, Together};
pub use ids::{
    AgentId, AgentUid, ChatId, DiscordId, InvalidAgentId, LocalName, PersonId, Platform,
    TelegramUserId, TopicId,
};
pub use labels::{Label, Labels};
pub use marks::{Imitation, Marked, Marks, Writer, is_another_agents, words_alone};
pub use message::{Addressed, Arrival, Destination, Inbound, MessageId, Moved, TurnEvent};
pub use origin::Origin;
pub use outgoing::OutgoingFile;
pub use role::Role;
pub use said::{Around, Author, MemoryMark, Said, Source, Voice};
pub use session_key::{InvalidSessionKey, SessionKey};
pub use user_error::{UserError, nearest};
pub use zone::Zone;
