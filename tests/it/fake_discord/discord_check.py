"""Looks at the fake Discord with discord.py: connects, reads what people do, and does what a bot does.

Usage: discord_check.py URL TOKEN. The test that starts it plays the people.
"""
import asyncio
import sys

import discord
import yarl
from discord import app_commands, http
from discord.gateway import DiscordWebSocket

URL, TOKEN = sys.argv[1:]
GENERAL, FORUM, THREAD, ALICE = 8101, 8102, 8201, 111
http.Route.BASE = URL + "/api/v10"
DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(URL.replace("http", "ws"))

intents = discord.Intents.none()
intents.guilds = intents.messages = intents.message_content = intents.reactions = True
client = discord.Client(intents=intents, allowed_mentions=discord.AllowedMentions.none())
tree = app_commands.CommandTree(client)
seen = {}
failed = []


def check(name):
    """Runs an event's checks; a failed one ends the script."""
    def wrap(work):
        async def run(*event):
            try:
                await work(*event)
                seen[name] = seen.get(name, 0) + 1
            except Exception as error:
                failed.append(error)
                await client.close()
        run.__name__ = work.__name__
        return run
    return wrap


async def refused(call, status, code):
    try:
        await call
    except discord.HTTPException as error:
        assert (error.status, error.code) == (status, code), error
        return
    raise AssertionError(f"not refused with {code}")


class Undo(discord.ui.View):
    @discord.ui.button(label="Undo", custom_id="undo")
    async def undo(self, interaction, button):
        seen["button"] = 1
        await interaction.response.edit_message(content="undone", view=None)


@tree.command(name="agent", description="Choose an agent")
async def agent(interaction: discord.Interaction, name: str):
    assert interaction.user.id == ALICE and [role.id for role in interaction.user.roles] == [8001, 61]
    await interaction.response.defer()
    await interaction.edit_original_response(content=f"{name} it is")
    await interaction.followup.send("take it back?", view=Undo())
    seen["command"] = 1


@agent.autocomplete("name")
async def names(interaction: discord.Interaction, current: str):
    seen["autocomplete"] = 1
    return [app_commands.Choice(name=name, value=name) for name in ["scribe", "gardener"] if name.startswith(current)]


@client.event
@check("ready")
async def on_ready():
    guild = client.get_guild(8001)
    assert guild.name == "Garden" and guild.owner_id == 333 and guild.get_role(61).name == "gardeners"
    kinds = {channel.id: channel.type.name for channel in guild.channels}
    assert kinds == {8100: "category", 8101: "text", 8102: "forum", 8103: "voice", 8104: "news", 8105: "stage_voice"}, kinds
    forum, general = guild.get_channel(FORUM), guild.get_channel(GENERAL)
    assert forum.available_tags[0].name == "bug" and general.category.name == "plants"
    assert guild.get_thread(THREAD).parent_id == GENERAL
    await check_calls(guild, general, forum)
    await tree.sync()


async def check_calls(guild, general, forum):
    sent = await general.send("hello @everyone")
    assert not sent.mention_everyone and sent.author == client.user
    async with general.typing():
        pass
    sent = await sent.edit(content="hello all")
    assert sent.content == "hello all" and sent.edited_at
    await sent.add_reaction("👀")
    await sent.remove_reaction("👀", client.user)
    answer = await sent.reply("yes", file=discord.File(__file__, "check.py"))
    assert answer.reference.message_id == sent.id
    assert (await answer.attachments[0].read()).startswith(b'"""Looks at')
    history = [message.id async for message in general.history(limit=10, after=discord.Object(sent.id - 1))]
    assert history == [sent.id, answer.id], history
    await answer.delete()
    await refused(general.fetch_message(answer.id), 404, 10008)
    await refused(general.send("x" * 2001), 400, 50035)
    await refused(general.send(""), 400, 50006)
    await refused(client.fetch_channel(1), 404, 10003)
    opened = await forum.create_thread(name="Roses", content="first", applied_tags=list(forum.available_tags))
    assert opened.thread.id == opened.message.id and opened.thread.applied_tags[0].name == "bug"
    await opened.thread.edit(archived=True, locked=True)
    await refused(opened.thread.send("x"), 400, 50083)
    below = await general.create_thread(name="below", message=sent)
    assert below.id == sent.id
    assert {thread.id for thread in await guild.active_threads()} == {THREAD, below.id}
    # Armed by the test: one rate limit, which discord.py sits out, and one refusal.
    alice = await client.fetch_user(ALICE)
    await refused(guild.fetch_member(ALICE), 403, 50001)
    member = await guild.fetch_member(ALICE)
    assert [role.id for role in member.roles] == [8001, 61]
    assert (await alice.send("psst")).guild is None


@client.event
@check("message")
async def on_message(message):
    if message.author == client.user:
        return
    if message.content == "hello, edited":
        # discord.py applies an edit to the message it hands out, also before this handler has run.
        pass
    elif message.content.endswith("> hello"):
        assert client.user in message.mentions and [role.id for role in message.author.roles] == [8001, 61]
    elif message.content == "an answer":
        assert message.type == discord.MessageType.reply and message.reference.resolved.author.id == ALICE
        assert await message.attachments[0].read() == b"abc"
    elif message.content == "help me":
        assert message.id == message.channel.id and message.channel.parent_id == FORUM
    elif message.content == "in private":
        assert message.guild is None and message.channel.type == discord.ChannelType.private
    elif message.content == "goodbye":
        seen["goodbye"] = 1
        await client.close()
    else:
        raise AssertionError(message.content)


@client.event
@check("edit")
async def on_message_edit(before, after):
    assert after.author == client.user or after.content == "hello, edited"


@client.event
@check("reaction")
async def on_raw_reaction_add(payload):
    assert str(payload.emoji) in "🌹👀" and payload.guild_id == 8001


@client.event
@check("thread")
async def on_thread_create(thread):
    assert thread.name in ("Wilting", "Roses", "below")


@client.event
@check("resumed")
async def on_resumed():
    pass


async def main():
    async with client:
        await asyncio.wait_for(client.start(TOKEN), 60)


discord.utils.setup_logging(level=30)
asyncio.run(main())
if failed:
    raise failed[0]
wanted = {"ready", "message", "edit", "reaction", "thread", "resumed", "command", "autocomplete", "button", "goodbye"}
assert not wanted - seen.keys(), f"not seen: {wanted - seen.keys()}"
print("discord.py agrees")
