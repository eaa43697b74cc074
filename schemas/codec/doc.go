// Package codec encodes and decodes messages, in msgpack and in JSON. It stands below the words:
// package schemas tells it in tables ([Words]) which structs, events and decisions there are.
//
// A struct of the tables has a plan, which is made once by reflection. What a plan does not expect
// goes by the library of msgpack or by encoding/json; both ways write the same bytes and read the
// same values.
//
// Invariants:
//
//   - Nothing from the network reaches the msgpack library before [Scan] has bounded its depth and
//     lengths: the library trusts declared lengths, and five hostile bytes would make it allocate
//     64 GiB. The reader of the plans bounds each length itself, and leaves what it does not expect
//     to Scan and the library.
//   - The numbers of a compact record are on disks. None of them changes.
package codec
