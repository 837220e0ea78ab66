// A button on every block of code that copies it; what commands print needs none.

async function copy(block) {
  try {
    await navigator.clipboard.writeText(block.textContent);
  } catch {
    // Without the right to the clipboard, the old way needs a selection.
    getSelection().selectAllChildren(block);
    document.execCommand("copy");
  }
}

for (const block of document.querySelectorAll("[class^='highlight-']:not(.highlight-text) pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await copy(block);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.parentElement.append(button);
}
