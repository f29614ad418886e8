// The entrance from Telegram: hands over what Telegram has signed, which is in the address behind the #.

const shown = /** @type {HTMLElement} */ (document.getElementById("state"));
const link = /** @type {HTMLAnchorElement} */ (document.getElementById("go"));

async function enter() {
  const initData = new URLSearchParams(location.hash.slice(1)).get("tgWebAppData");
  if (!initData) {
    shown.textContent = "This page is opened from Telegram: write /dashboard to the bot, in your private chat.";
    return;
  }
  // The address stays in the history, and what it has must not be used from there.
  history.replaceState(null, "", location.pathname);
  const framed = window.top !== window;
  const answer = await fetch("/mini-app", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ init_data: initData, framed }),
  });
  const told = await answer.json();
  if (!answer.ok) {
    shown.textContent = told.detail;
  } else if (told.link) {
    shown.textContent = "You are signed in. Within a minute, once:";
    link.href = told.link;
    link.hidden = false;
  } else {
    location.replace("/");
  }
}

enter().catch(() => {
  shown.textContent = "The gateway did not answer. Close this and try again.";
});
