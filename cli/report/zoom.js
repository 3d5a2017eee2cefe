"use strict";
/* A picture of the page, large, in a dialog: chosen by the pointer or the keyboard, left by either. */
(function () {
    const dialog = document.body.appendChild(document.createElement("dialog"));
    const large = dialog.appendChild(document.createElement("img"));
    const words = dialog.appendChild(document.createElement("p"));

    function open(picture, name) {
        const box = picture.getBoundingClientRect();
        large.src = picture.getAttribute("href") || picture.src;
        large.alt = words.textContent = name;
        large.style.setProperty("--ratio", box.width / box.height);
        large.className = "pixels";
        dialog.showModal();
    }
    dialog.addEventListener("click", () => dialog.close());
    for (const picture of document.querySelectorAll(".pictures img, .picture-grid image")) {
        const title = picture.querySelector("title");
        const name = title ? title.textContent : picture.alt;
        picture.classList.add("zooms");
        picture.setAttribute("tabindex", "0");
        picture.setAttribute("role", "button");
        picture.setAttribute("aria-label", "enlarge: " + name);
        picture.addEventListener("click", () => open(picture, name));
        picture.addEventListener("keydown", (event) => {
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            open(picture, name);
        });
    }
})();
