package memlimit

// KeepWith is [Keep] with another memory.
var KeepWith = keep
