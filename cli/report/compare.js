"use strict";
(function () {
    const box = document.getElementById("compare");
    const slider = document.getElementById("slider");
    const sides = { left: box.querySelector(".above img"), right: box.querySelector(".below") };

    function show(side, name) {
        const source = document.getElementById("picture-" + name);
        sides[side].src = source.src;
        sides[side].className = side === "right" ? "below " + source.className : source.className;
        sides[side].alt = source.alt;
    }
    function showBoth() {
        for (const side of ["left", "right"]) show(side, document.getElementById(side).value);
    }
    /* The slices of a volume: one of them stands in the pictures of the page. */
    const data = document.getElementById("slices");
    if (data) {
        const slices = JSON.parse(data.textContent);
        const chooser = document.getElementById("slice");
        const choose = () => {
            const slice = slices[chooser.value];
            for (const name in slice)
                if (name !== "slice") document.getElementById("picture-" + name).src = slice[name];
            document.getElementById("slice-number").value = slice.slice + 1;
            showBoth();
        };
        chooser.max = slices.length - 1;
        chooser.value = slices.length >> 1;
        chooser.addEventListener("input", choose);
        choose();
    }
    function cutAt(percent) {
        slider.value = percent;
        box.style.setProperty("--cut", percent + "%");
    }
    function follow(event) {
        const frame = box.getBoundingClientRect();
        const percent = 100 * (event.clientX - frame.left) / frame.width;
        cutAt(Math.min(100, Math.max(0, percent)));
    }
    for (const side of ["left", "right"]) {
        const choice = document.getElementById(side);
        choice.addEventListener("change", () => show(side, choice.value));
    }
    showBoth();
    slider.addEventListener("input", () => cutAt(slider.value));
    box.addEventListener("pointerdown", (event) => {
        box.setPointerCapture(event.pointerId);
        follow(event);
    });
    box.addEventListener("pointermove", (event) => {
        if (event.buttons) follow(event);
    });
})();
