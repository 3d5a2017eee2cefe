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
        show(side, choice.value);
    }
    slider.addEventListener("input", () => cutAt(slider.value));
    box.addEventListener("pointerdown", (event) => {
        box.setPointerCapture(event.pointerId);
        follow(event);
    });
    box.addEventListener("pointermove", (event) => {
        if (event.buttons) follow(event);
    });
})();
