package schemas

import (
	"iter"
	"reflect"
)

var payloadType = reflect.TypeFor[Payload]()

// PayloadFields are the fields of the attributes of an event or a decision that are payloads
// themselves, by their places in the struct; none of what is no pointer to one. A payload within
// another struct is not among them.
func PayloadFields(attributes any) iter.Seq2[int, Payload] {
	return func(yield func(int, Payload) bool) {
		v := reflect.ValueOf(attributes)
		if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return
		}
		for i := range v.Elem().NumField() {
			field := v.Elem().Field(i)
			if field.Type() != payloadType || !field.CanSet() {
				continue
			}
			if !yield(i, field.Bytes()) {
				return
			}
		}
	}
}
