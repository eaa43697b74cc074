package jsonschema_test

import (
	"math"
	"reflect"
	"slices"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/internal/gosource"
	"github.com/droverhq/drover/schemas"
)

// draw sets v and what is in it to values that the encoder may meet.
func draw(r *rapid.T, v reflect.Value, path string) {
	if drawNamed(r, v, path) || v.Kind() != reflect.Struct && rapid.IntRange(0, 3).Draw(r, path+"?") == 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.SampledFrom(wordsOf(v.Type())).Draw(r, path))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(r, path))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(rapid.Uint32().Draw(r, path)))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Byte().Draw(r, path)))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(r, path))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		draw(r, v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 2).Draw(r, path+"#"), 2))
		for i := range v.Len() {
			draw(r, v.Index(i), path+".")
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"a": rapid.String().Draw(r, path)}))
	case reflect.Struct:
		for i := range v.NumField() {
			draw(r, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	default:
		r.Fatalf("%s: draw knows no %s", path, v.Type())
	}
}

// drawNamed draws the types that are more than their kind. Zero of a closed enumeration is not drawn: no writer means it.
func drawNamed(r *rapid.T, v reflect.Value, path string) bool {
	switch p := v.Addr().Interface().(type) {
	case *schemas.Payload:
		*p = rapid.SampledFrom([]schemas.Payload{
			nil, schemas.Text("text"), schemas.Text(`{"a":[1,null]}`), schemas.Text(`{"$text":1}`), schemas.Text(`{"$ref":{}}`),
			{0xff, 0},
			schemas.RefPayload(&schemas.PayloadRef{Object: "o", Size: 1, Digest: "00"}), schemas.Text(`"quoted"`), schemas.Text("17"),
		}).Draw(r, path)
	case *schemas.Duration:
		*p = rapid.SampledFrom([]schemas.Duration{0, 1, schemas.Unlimited, schemas.Seconds(90), schemas.Seconds(1e9), math.MaxInt64}).Draw(r, path)
	case *schemas.Timestamp:
		*p = schemas.Timestamp(rapid.Int64Range(0, 1<<62).Draw(r, path))
	case *schemas.ReportKind:
		*p = schemas.ReportKind(rapid.SampledFrom(wordsOf(v.Type())).Draw(r, path))
	case *schemas.TypeKind:
		*p = schemas.TypeKind(rapid.SampledFrom(wordsOf(v.Type())).Draw(r, path))
	case *schemas.Event:
		*p = schemas.Event{ID: rapid.Int64Range(1, 1<<60).Draw(r, path), Attributes: drawEvent(r, path)}
	case *schemas.Decision:
		*p = schemas.Decide(drawDecision(r, path))
	default:
		if v.Kind() == reflect.Int && path[len(path)-2:] == ".V" {
			v.SetInt(schemas.Version)
			return true
		}
		return false
	}
	return true
}

func drawEvent(r *rapid.T, path string) schemas.Attributes {
	types := slices.Sorted(slices.Values(schemas.EventTypes()))
	var e schemas.Event
	if err := e.UnmarshalJSON([]byte(`{"type":"` + string(rapid.SampledFrom(types).Draw(r, path+".type")) + `"}`)); err != nil {
		r.Fatal(err)
	}
	draw(r, reflect.ValueOf(e.Attributes).Elem(), path)
	return e.Attributes
}

func drawDecision(r *rapid.T, path string) schemas.DecisionAttributes {
	types := slices.Sorted(slices.Values(schemas.DecisionTypes()))
	var d schemas.Decision
	if err := d.UnmarshalJSON([]byte(`{"type":"` + string(rapid.SampledFrom(types).Draw(r, path+".type")) + `"}`)); err != nil {
		r.Fatal(err)
	}
	draw(r, reflect.ValueOf(d.Attributes).Elem(), path)
	return d.Attributes
}

var vocabulary, _ = gosource.Read("..", "../ops")

// wordsOf are the values of an enumeration, or any words.
func wordsOf(t reflect.Type) []string {
	words := []string{"a", "é b", ""}
	if t.PkgPath() != "" {
		words = nil
		for _, c := range vocabulary.ConstantsOf(t.Name()) {
			words = append(words, c.Value)
		}
	}
	return words
}
