"""Looks at the fake Telegram with the eyes of aiogram, whose types were made from Telegram's own documentation.

    python aiogram_check.py URL TOKEN

The test `outside.rs` has prepared the chats and the faults that are met here.
"""

import asyncio
import sys

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramBadRequest,
    TelegramConflictError,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramUnauthorizedError,
)
from aiogram.types import (
    BotCommand,
    BotCommandScopeAllPrivateChats,
    BufferedInputFile,
    ChatMemberAdministrator,
    ChatMemberBanned,
    ChatMemberMember,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    MessageEntity,
    ReactionTypeEmoji,
    ReplyParameters,
)
from pydantic import BaseModel

ALICE, FORUM, SUPERGROUP, GROUP, LEFT, OLD, NEW, CHANNEL = 111, -1001, -1002, -13, -1004, -15, -1006, -1007
TOPIC, CLOSED, DM_TOPIC = 101, 102, 55

# The real server still sends it, and the documentation no longer has it.
KNOWN_EXTRAS = {"all_members_are_administrators"}


def no_extras(value, path="answer"):
    """Fields that Telegram's documentation does not know; pydantic keeps them apart."""
    if isinstance(value, BaseModel):
        extras = set(value.model_extra or {}) - KNOWN_EXTRAS
        assert not extras, f"{path} has unknown fields {extras}"
        for name in type(value).model_fields:
            no_extras(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            no_extras(item, f"{path}[{number}]")
    return value


def fields(value):
    return value.model_dump(exclude_none=True, mode="json", warnings=False)


async def refused(call, kind, words=""):
    try:
        answer = await call
    except kind as error:
        assert words in str(error), f"{error!r} does not say {words!r}"
        return error
    raise AssertionError(f"expected {kind.__name__}, got {answer!r}")


async def check_updates(bot):
    updates = no_extras(await bot.get_updates(timeout=0))
    kinds = {}
    for update in updates:
        kinds.setdefault(update.event_type, []).append(update.event)
    counts = {kind: len(events) for kind, events in kinds.items()}
    assert counts == {"message": 15, "edited_message": 1, "callback_query": 1, "channel_post": 1, "my_chat_member": 2}, counts
    said = {message.text: message for message in kinds["message"] if message.text}

    assert said["in private"].chat.type == "private" and said["in private"].from_user.id == ALICE
    assert said["in a private topic"].message_thread_id == DM_TOPIC and said["in a private topic"].is_topic_message
    assert said["in a plain group"].chat.type == "group"
    reply = said["a reply in a supergroup"]
    assert reply.message_thread_id == reply.reply_to_message.message_id and not reply.is_topic_message
    topic = said["in a topic"]
    assert topic.is_topic_message and topic.message_thread_id == TOPIC and topic.chat.is_forum
    assert topic.reply_to_message.forum_topic_created.name == "Rose"
    assert said["in General"].message_thread_id is None and said["in General"].is_topic_message is None
    assert said["as the group"].sender_chat.id == FORUM and said["as the group"].from_user.username == "GroupAnonymousBot"
    marked = said["/help@parlor_bot 🌹 @parlor_bot and Bob"]
    assert [(entity.type, entity.extract_from(marked.text)) for entity in marked.entities] == [
        ("bot_command", "/help@parlor_bot"),
        ("mention", "@parlor_bot"),
        ("text_mention", "Bob"),
    ]
    assert any(message.forum_topic_edited and message.forum_topic_edited.name == "Roses" for message in kinds["message"])
    assert any(message.forum_topic_closed for message in kinds["message"])
    assert any(message.forum_topic_reopened for message in kinds["message"])
    assert any(message.migrate_to_chat_id == NEW for message in kinds["message"])
    assert any(message.migrate_from_chat_id == OLD for message in kinds["message"])
    assert kinds["channel_post"][0].from_user is None and kinds["channel_post"][0].sender_chat.id == CHANNEL
    assert kinds["edited_message"][0].text == "in private, edited" and kinds["edited_message"][0].edit_date
    promoted, removed = kinds["my_chat_member"]
    assert isinstance(promoted.new_chat_member, ChatMemberAdministrator) and promoted.new_chat_member.can_manage_topics
    assert isinstance(removed.new_chat_member, ChatMemberBanned)

    query = kinds["callback_query"][0]
    assert query.data == "press me" and query.message.reply_markup.inline_keyboard[0][0].text == "Press"
    assert await bot.answer_callback_query(query.id, text="thanks")
    await refused(bot.answer_callback_query(query.id), TelegramBadRequest, "query is too old")
    assert await bot.get_updates(offset=updates[-1].update_id + 1, timeout=0) == []


async def check_messages(bot):
    keyboard = InlineKeyboardMarkup(inline_keyboard=[[InlineKeyboardButton(text="Yes", callback_data="yes")]])
    bold = MessageEntity(type="bold", offset=3, length=4)
    sent = no_extras(
        await bot.send_message(FORUM, "🌹 bold", message_thread_id=TOPIC, entities=[bold], reply_markup=keyboard)
    )
    assert sent.is_topic_message and sent.message_thread_id == TOPIC and sent.from_user.id == bot.id
    assert [fields(entity) for entity in sent.entities] == [fields(bold)]
    assert fields(sent.reply_markup) == fields(keyboard)
    answer = await bot.send_message(FORUM, "yes", reply_parameters=ReplyParameters(message_id=sent.message_id))
    assert answer.reply_to_message.message_id == sent.message_id and answer.message_thread_id == TOPIC
    assert (await bot.send_message(FORUM, "to General")).message_thread_id is None

    edited = no_extras(await bot.edit_message_text("plain", chat_id=FORUM, message_id=sent.message_id))
    assert edited.text == "plain" and edited.edit_date and not edited.entities and not edited.reply_markup
    again = bot.edit_message_text("plain", chat_id=FORUM, message_id=sent.message_id)
    await refused(again, TelegramBadRequest, "message is not modified")
    assert await bot.set_message_reaction(FORUM, sent.message_id, reaction=[ReactionTypeEmoji(emoji="👀")])
    assert await bot.send_chat_action(FORUM, "typing", message_thread_id=TOPIC)
    assert await bot.delete_message(FORUM, sent.message_id)
    assert await bot.send_message_draft(ALICE, draft_id=1, text="so far")

    file = BufferedInputFile(b"\x89PNG", "a rose.png")
    photo = no_extras(await bot.send_photo(FORUM, file, caption="A rose", message_thread_id=TOPIC))
    assert photo.photo[0].file_size == 4 and photo.caption == "A rose" and photo.message_thread_id == TOPIC
    document = no_extras(await bot.send_document(ALICE, file, caption="The same"))
    assert document.document.file_name == "a rose.png" and document.caption == "The same"
    await refused(bot.send_photo(ALICE, file, caption="x" * 1025), TelegramBadRequest, "caption is too long")

    await refused(bot.send_message(ALICE, "x" * 4097), TelegramBadRequest, "message is too long")
    await refused(bot.send_message(ALICE, " "), TelegramBadRequest, "text is empty")
    await refused(bot.send_message(FORUM, "x", message_thread_id=1), TelegramBadRequest, "message thread not found")
    await refused(bot.send_message(FORUM, "x", message_thread_id=CLOSED), TelegramBadRequest, "TOPIC_CLOSED")
    await refused(bot.send_message(-999, "x"), TelegramBadRequest, "chat not found")
    await refused(bot.send_message(LEFT, "x"), TelegramForbiddenError, "bot was kicked")
    moved = await refused(bot.send_message(OLD, "x"), TelegramMigrateToChat)
    assert moved.migrate_to_chat_id == NEW


async def check_the_rest(bot, url):
    me = no_extras(await bot.get_me())
    assert me.is_bot and me.username == "parlor_bot" and me.can_read_all_group_messages is not None
    commands = [BotCommand(command="help", description="what I can do")]
    assert await bot.set_my_commands(commands, scope=BotCommandScopeAllPrivateChats())
    told = await bot.get_my_commands(scope=BotCommandScopeAllPrivateChats())
    assert [fields(command) for command in told] == [fields(command) for command in commands]
    assert await bot.get_my_commands() == []
    assert await bot.delete_my_commands(scope=BotCommandScopeAllPrivateChats())
    shouting = [BotCommand(command="HELP", description="what I can do")]
    await refused(bot.set_my_commands(shouting), TelegramBadRequest, "BOT_COMMAND_INVALID")

    for chat in (ALICE, FORUM, SUPERGROUP, GROUP, CHANNEL):
        assert no_extras(await bot.get_chat(chat)).id == chat
    assert (await bot.get_chat(FORUM)).permissions.can_send_messages
    assert isinstance(no_extras(await bot.get_chat_member(FORUM, bot.id)), ChatMemberAdministrator)
    assert isinstance(no_extras(await bot.get_chat_member(SUPERGROUP, bot.id)), ChatMemberMember)
    await refused(bot.get_chat_member(LEFT, bot.id), TelegramForbiddenError)

    await refused(bot.set_webhook("http://example.org/"), TelegramBadRequest, "HTTPS")
    await refused(bot.set_webhook("https://example.org/", secret_token="no spaces"), TelegramBadRequest, "unallowed")
    assert await bot.set_webhook("https://example.org/hook", secret_token="secret", allowed_updates=["message"])
    assert no_extras(await bot.get_webhook_info()).url == "https://example.org/hook"
    await refused(bot.get_updates(timeout=0), TelegramConflictError, "webhook is active")
    assert await bot.delete_webhook()

    # Armed by the test, in this order.
    waits = await refused(bot.send_chat_action(ALICE, "typing"), TelegramRetryAfter)
    assert waits.retry_after == 7
    await refused(bot.send_chat_action(ALICE, "typing"), TelegramForbiddenError, "bot was blocked by the user")
    await refused(bot.send_chat_action(ALICE, "typing"), ClientDecodeError)
    await refused(bot.send_chat_action(ALICE, "typing"), TelegramNetworkError)
    assert await bot.send_chat_action(ALICE, "typing")
    async with client(url, "999:WRONG") as stranger:
        await refused(stranger.get_me(), TelegramUnauthorizedError)


def client(url, token):
    return Bot(token, session=AiohttpSession(api=TelegramAPIServer.from_base(url))).context()


async def main(url, token):
    async with client(url, token) as bot:
        await check_updates(bot)
        await check_messages(bot)
        await check_the_rest(bot, url)


asyncio.run(main(*sys.argv[1:]))
print("aiogram agrees")
