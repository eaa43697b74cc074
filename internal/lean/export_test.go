package lean

// MakeReady is what [Ready] does, at once and in any case.
var MakeReady = makeReady
