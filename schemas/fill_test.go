package schemas_test

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// fill sets every field below v to a value that is not zero. A value depends on nothing but the path of its field, so
// that a new field changes no other one in the golden files.
func fill(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	h := fnv.New64a()
	h.Write([]byte(path))
	n := h.Sum64()
	if fillNamed(v, n, path) {
		return
	}
	if strings.HasSuffix(path, ".V") {
		v.SetInt(schemas.Version)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("%s é %03x", path[1:], n&0xfff))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n>>(8+n%40)) + 1)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(n>>(n%8)&(1<<(v.Type().Bits()-1)-1) + 1)
	case reflect.Float64:
		v.SetFloat(float64(n%100000)/8 + 0.125)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), fmt.Sprintf("%s.%d", path, i))
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k1": path, "k2": "", "ключ": "значение"}))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	default:
		t.Fatalf("%s: fill knows no %s", path, v.Type())
	}
}

// fillNamed fills the types of the package that are more than their kind.
func fillNamed(v reflect.Value, n uint64, path string) bool {
	switch p := v.Addr().Interface().(type) {
	case *schemas.Payload:
		*p = []schemas.Payload{
			schemas.Text(`{"path":"` + path + `","n":[1,2.5,null]}`),
			schemas.Text("plain text of " + path),
			{0xff, 0x00, byte(n), 0xfe},
		}[n%3]
	case *schemas.Duration:
		*p = schemas.Duration(n>>12) + 1
	case *schemas.Timestamp:
		*p = schemas.Timestamp(1_600_000_000_000_000_000 + n>>4)
	case *schemas.Attributes:
		*p = &schemas.Marker{MarkerName: path, DeciderCompletedEventID: int64(n%1000) + 1}
	case *schemas.DecisionAttributes:
		*p = &schemas.CancelTimer{TimerID: path}
	default:
		return false
	}
	return true
}

// filled returns a new filled value of the type of zero, a pointer.
func filled[T any](t *testing.T, zero T) T {
	t.Helper()
	v := reflect.New(reflect.TypeOf(zero).Elem())
	fill(t, v.Elem(), "."+v.Elem().Type().Name())
	eachField(v.Elem(), v.Elem().Type().Name(), func(path string, v reflect.Value) {
		if v.IsZero() && (v.Kind() != reflect.Struct || v.NumField() > 0) {
			t.Fatalf("%s is zero", path)
		}
	})
	return v.Interface().(T)
}

func eachField(v reflect.Value, path string, f func(string, reflect.Value)) {
	f(path, v)
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			eachField(v.Elem(), path, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			eachField(v.Field(i), path+"."+v.Type().Field(i).Name, f)
		}
	}
}

// attributesOf returns new, empty attributes of a type, made by the package itself.
func attributesOf(t *testing.T, typ schemas.EventType) schemas.Attributes {
	t.Helper()
	var e schemas.Event
	if err := e.UnmarshalJSON(fmt.Appendf(nil, `{"type":%q}`, typ)); err != nil {
		t.Fatal(err)
	}
	return e.Attributes
}

func decisionOf(t *testing.T, typ schemas.DecisionType) schemas.DecisionAttributes {
	t.Helper()
	var d schemas.Decision
	if err := d.UnmarshalJSON(fmt.Appendf(nil, `{"type":%q}`, typ)); err != nil {
		t.Fatal(err)
	}
	return d.Attributes
}

// filledEvents returns one filled event of every type, in the order of the names.
func filledEvents(t *testing.T) []schemas.Event {
	t.Helper()
	var events []schemas.Event
	for i, typ := range slices.Sorted(slices.Values(schemas.EventTypes())) {
		events = append(events, schemas.Event{
			ID: int64(i + 1), Time: 1_700_000_000_000_000_000 + schemas.Timestamp(i), Attributes: filled(t, attributesOf(t, typ)),
		})
	}
	return events
}

// filledDecisions returns one filled decision of every type, in the order of the names.
func filledDecisions(t *testing.T) []schemas.Decision {
	t.Helper()
	var all []schemas.Decision
	for _, typ := range slices.Sorted(slices.Values(schemas.DecisionTypes())) {
		all = append(all, schemas.Decide(filled(t, decisionOf(t, typ))))
	}
	return all
}

// messages returns an empty value of every message type of the package.
func messages() []any {
	return []any{
		&schemas.ChildReport{}, &schemas.ExternalSignal{}, &schemas.ExternalAnswer{}, &schemas.Control{},
		&schemas.ControlAnswer{}, &schemas.NodeRecord{}, &schemas.StateRecord{}, &schemas.LockRecord{}, &schemas.LocksRequest{}, &schemas.LocksResponse{},
		&schemas.ActivityTask{}, &schemas.AckResponse{}, &schemas.Alarm{}, &schemas.Announcement{}, &schemas.AuditRequest{}, &schemas.AuditResponse{}, &schemas.BeatAnswer{},
		&schemas.Checkpoint{}, &schemas.CountRequest{}, &schemas.CountResponse{}, &schemas.DeadCount{}, &schemas.DeadEntry{}, &schemas.DeadLetter{}, &schemas.DeadRequest{}, &schemas.DeadResponse{},
		&schemas.DecisionReply{}, &schemas.DecisionTask{}, &schemas.DescribeResponse{}, &schemas.DownloadRequest{},
		&schemas.DownloadResponse{}, &schemas.Error{},
		&schemas.ExecutionRequest{}, &schemas.Fence{}, &schemas.Heartbeat{}, &schemas.HistoryRequest{},
		&schemas.HistoryResponse{}, &schemas.ListRequest{}, &schemas.ListResponse{}, &schemas.NamespaceListResponse{},
		&schemas.NamespaceRequest{}, &schemas.NamespaceResponse{}, &schemas.OutcomeAnswer{}, &schemas.PayloadRef{},
		&schemas.Permission{},
		&schemas.Record{}, &schemas.ReplayRequest{}, &schemas.ReplayResponse{}, &schemas.Report{}, &schemas.ResultResponse{}, &schemas.Ring{}, &ops.ScheduleTimes{}, &ops.ScheduleWindow{}, &schemas.SignalRequest{},
		&schemas.SignalResponse{}, &schemas.StartRequest{}, &schemas.StartResponse{}, &schemas.TaskListRequest{},
		&schemas.TaskListResponse{}, &schemas.TaskListsRequest{}, &schemas.TaskListsResponse{}, &schemas.TypeInfo{}, &schemas.TypeListRequest{}, &schemas.TypeListResponse{},
		&schemas.TypeRegisterRequest{}, &schemas.TypeRequest{}, &schemas.TypeResponse{}, &schemas.UploadRequest{},
		&schemas.UploadResponse{}, &schemas.WhyResponse{}, &schemas.RetentionResponse{}, &schemas.SoftRequest{}, &schemas.SoftResponse{},
	}
}
