package jsonschema

import (
	"reflect"

	"github.com/droverhq/drover/schemas"
)

// Messages returns the types of all messages: what is the body of a message, a key or a file, as a whole. Types that are only
// parts of one have no schema of their own. Append here what is new on the wire.
func Messages() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[schemas.AckResponse](),
		reflect.TypeFor[schemas.ActivityTask](),
		reflect.TypeFor[schemas.Alarm](),
		reflect.TypeFor[schemas.Announcement](),
		reflect.TypeFor[schemas.AuditRequest](),
		reflect.TypeFor[schemas.AuditResponse](),
		reflect.TypeFor[schemas.BeatAnswer](),
		reflect.TypeFor[schemas.Checkpoint](),
		reflect.TypeFor[schemas.ChildReport](),
		reflect.TypeFor[schemas.Control](), reflect.TypeFor[schemas.ControlAnswer](), reflect.TypeFor[schemas.NodeRecord](),
		reflect.TypeFor[schemas.CountRequest](),
		reflect.TypeFor[schemas.CountResponse](),
		reflect.TypeFor[schemas.DeadCount](),
		reflect.TypeFor[schemas.DeadEntry](),
		reflect.TypeFor[schemas.DeadLetter](),
		reflect.TypeFor[schemas.DeadRequest](),
		reflect.TypeFor[schemas.DeadResponse](),
		reflect.TypeFor[schemas.DecisionReply](),
		reflect.TypeFor[schemas.DecisionTask](),
		reflect.TypeFor[schemas.DescribeResponse](),
		reflect.TypeFor[schemas.DownloadRequest](),
		reflect.TypeFor[schemas.DownloadResponse](),
		reflect.TypeFor[schemas.Error](),
		reflect.TypeFor[schemas.ExecutionRequest](),
		reflect.TypeFor[schemas.ExternalAnswer](),
		reflect.TypeFor[schemas.ExternalSignal](),
		reflect.TypeFor[schemas.Fence](),
		reflect.TypeFor[schemas.Heartbeat](),
		reflect.TypeFor[schemas.HistoryRequest](),
		reflect.TypeFor[schemas.HistoryResponse](),
		reflect.TypeFor[schemas.ListRequest](),
		reflect.TypeFor[schemas.ListResponse](),
		reflect.TypeFor[schemas.LockRecord](), reflect.TypeFor[schemas.LocksRequest](), reflect.TypeFor[schemas.LocksResponse](),
		reflect.TypeFor[schemas.NamespaceListResponse](),
		reflect.TypeFor[schemas.NamespaceRequest](),
		reflect.TypeFor[schemas.NamespaceResponse](),
		reflect.TypeFor[schemas.PayloadRef](),
		reflect.TypeFor[schemas.Permission](),
		reflect.TypeFor[schemas.Record](),
		reflect.TypeFor[schemas.Report](),
		reflect.TypeFor[schemas.ResultResponse](),
		reflect.TypeFor[schemas.Ring](),
		reflect.TypeFor[schemas.Rings](), reflect.TypeFor[schemas.RingsAnswer](),
		reflect.TypeFor[schemas.SignalRequest](),
		reflect.TypeFor[schemas.SignalResponse](),
		reflect.TypeFor[schemas.StartRequest](),
		reflect.TypeFor[schemas.StartResponse](),
		reflect.TypeFor[schemas.TaskListRequest](),
		reflect.TypeFor[schemas.TaskListResponse](),
		reflect.TypeFor[schemas.TaskListsRequest](),
		reflect.TypeFor[schemas.TaskListsResponse](),
		reflect.TypeFor[schemas.TypeInfo](),
		reflect.TypeFor[schemas.TypeListRequest](),
		reflect.TypeFor[schemas.TypeListResponse](),
		reflect.TypeFor[schemas.TypeRegisterRequest](),
		reflect.TypeFor[schemas.TypeRequest](),
		reflect.TypeFor[schemas.TypeResponse](),
		reflect.TypeFor[schemas.UploadRequest](),
		reflect.TypeFor[schemas.UploadResponse](),
		reflect.TypeFor[schemas.WhyResponse](),
	}
}
