// One sound at a time; tables wider than the page scroll in a frame of their own.
document.addEventListener("play", event => {
  for (const sound of document.querySelectorAll("audio")) if (sound !== event.target) sound.pause();
}, true);
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll(".bd-article table")) {
    const frame = document.createElement("div");
    frame.className = "scroll";
    frame.tabIndex = 0;
    table.replaceWith(frame);
    frame.append(table);
  }
});
