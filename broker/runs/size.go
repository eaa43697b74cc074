package runs

import (
	"reflect"

	"github.com/droverhq/drover/schemas"
)

// SizeOf estimates the encoded size of an event, payloads above all. What there is most of is told
// without looking at each field.
func SizeOf(e schemas.Event) int {
	const frame = 300
	switch a := e.Attributes.(type) {
	case *schemas.DeciderScheduled, *schemas.DeciderStarted, *schemas.ActivityStarted, *schemas.TimerExpired:
		return frame
	case *schemas.WorkflowStarted:
		if a.Attributes == nil && a.TagList == nil && a.SignalIDs == nil && a.RequestIDs == nil &&
			a.Locks == nil && a.ActivityDefaults == nil {
			return frame + 4*len(a.Input)/3
		}
	case *schemas.Signal:
		return frame + 4*len(a.Input)/3
	case *schemas.ActivityScheduled:
		if a.Retry == nil {
			return frame + 4*(len(a.Input)+len(a.Control))/3
		}
	case *schemas.ActivitySuccess:
		return frame + 4*len(a.Result)/3
	case *schemas.ActivityFailed:
		return frame + 4*len(a.Details)/3 + len(a.Reason)
	case *schemas.Marker:
		return frame + 4*len(a.Details)/3
	case *schemas.DeciderCompleted:
		return frame + 4*len(a.ExecutionContext)/3
	case *schemas.WorkflowSuccess:
		return frame + 4*len(a.Result)/3
	case *schemas.TimerScheduled:
		return frame + 4*len(a.Control)/3
	}
	return frame + contentSize(reflect.ValueOf(e.Attributes))
}

// ContentSize estimates the encoded size of what a value carries.
func ContentSize(v any) int { return contentSize(reflect.ValueOf(v)) }

// contentSize adds up texts, bytes, which stand in base64 in JSON, and what is around those of
// which there may be many.
func contentSize(v reflect.Value) (size int) {
	const quotes, names = 4, 200
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer:
		if !v.IsNil() {
			return contentSize(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			size += contentSize(field)
		}
	case reflect.Slice:
		switch v.Type().Elem().Kind() {
		case reflect.Uint8:
			return 4 * v.Len() / 3
		case reflect.Struct:
			size = names * v.Len()
		}
		for i := range v.Len() {
			size += quotes + contentSize(v.Index(i))
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			size += 2*quotes + contentSize(each.Key()) + contentSize(each.Value())
		}
	}
	return size
}

// SizeOfAll is [SizeOf] of several.
func SizeOfAll(events []schemas.Event) (size int) {
	for _, e := range events {
		size += SizeOf(e)
	}
	return size
}
