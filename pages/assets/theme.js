// Light or dark: as the system has it, until the button says otherwise.

const order = ["", "light", "dark"];
const words = {"": "Theme: system", light: "Theme: light", dark: "Theme: dark"};

function apply(theme) {
  if (theme === "") {
    delete document.documentElement.dataset.theme;
  } else {
    document.documentElement.dataset.theme = theme;
  }
}

function stored() {
  try {
    return localStorage.getItem("theme") ?? "";
  } catch {
    return ""; // no storage is allowed
  }
}

let theme = stored();
apply(theme);

const button = document.getElementById("theme");
if (button !== null) {
  button.hidden = false;
  button.title = words[theme];
  button.addEventListener("click", () => {
    theme = order[(order.indexOf(theme) + 1) % order.length];
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // Without storage, the theme lasts until the page is left.
    }
    apply(theme);
    button.title = words[theme];
    document.dispatchEvent(new Event("themechange"));
  });
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  document.dispatchEvent(new Event("themechange"));
});
