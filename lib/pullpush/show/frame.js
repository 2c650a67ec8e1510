const byId = id => document.getElementById(id);
const escape = text => text.replace(/[&<>]/g, c => `&#${c.charCodeAt(0)};`);
try {                                                     // the page around may be dark
  const page = parent.document.documentElement;
  const follow = () => document.documentElement.classList.toggle("dark", page.dataset.theme === "dark");
  new MutationObserver(follow).observe(page, { attributeFilter: ["data-theme"] });
  follow();
} catch (error) { }                                       // a frame of another origin says nothing
function fit() {                                          // the frame is as high as what it shows
  try { frameElement.style.height = document.body.offsetHeight + 8 + "px"; } catch (error) { }
}
onresize = fit;
