package subject_test

import (
	"testing"

	"github.com/droverhq/drover/broker/subject"
)

func TestPayloadSubjects(t *testing.T) {
	ns := subject.Namespace("default")
	for want, got := range map[string]string{
		"OBJ_drover-default-payloads":        ns.StreamPayloads(),
		"$O.drover-default-payloads.C.>":     ns.AllPayloadChunks(),
		"$O.drover-default-payloads.M.>":     ns.AllPayloadInfos(),
		"$O.drover-default-payloads.C.01J":   ns.PayloadChunks("01J"),
		"$O.drover-default-payloads.M.MDFK":  ns.PayloadInfo("01J"),
		"drover.default.api.upload.b1.u1":    ns.Upload("b1", "u1"),
		"drover.default.api.upload.b1.*.*":   ns.AllUploads("b1"),
		"drover.default.api.upload.b1.u1.0":  subject.UploadChunk(ns.Upload("b1", "u1"), 0),
		"drover.default.api.upload.b1.u1.17": subject.UploadChunk(ns.Upload("b1", "u1"), 17),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	upload, offset, ok := subject.ParseUploadChunk("drover.default.api.upload.b1.u1.17")
	if !ok || upload != ns.Upload("b1", "u1") || offset != 17 {
		t.Fatalf("got %s, %d, %v", upload, offset, ok)
	}
	for _, bad := range []string{"", "u", "u.", "u.x", "u.-1", "u.99999999999999999999"} {
		if _, _, ok := subject.ParseUploadChunk(bad); ok {
			t.Errorf("%q is taken for a chunk", bad)
		}
	}
}
