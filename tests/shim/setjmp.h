/* Nothing: the stand-in for cmocka next to this does not jump. */
