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

// Whole returns an event whose payloads are no references: resolve returns what one stands for.
// Other payloads stay as they are, and so does the event that is given. An error is that of resolve.
func Whole(e Event, resolve func(Payload) (Payload, error)) (Event, error) {
	for field, p := range PayloadFields(e.Attributes) {
		if _, ref := p.Ref(); !ref {
			continue
		}
		body, err := resolve(p)
		if err != nil {
			return e, err
		}
		whole := reflect.New(reflect.TypeOf(e.Attributes).Elem())
		whole.Elem().Set(reflect.ValueOf(e.Attributes).Elem())
		whole.Elem().Field(field).SetBytes(body)
		e.Attributes, _ = whole.Interface().(Attributes)
	}
	return e, nil
}
