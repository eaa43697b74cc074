package subject

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// StreamPayloads is the stream of the object store of large payloads: OBJ_drover-<ns>-payloads.
func (ns Namespace) StreamPayloads() string { return "OBJ_" + ns.StorePayloads() }

// AllPayloadChunks and AllPayloadInfos are the two halves of an object store, as every NATS client
// lays it out.
func (ns Namespace) AllPayloadChunks() string { return ns.payloads("C") + ">" }

// AllPayloadInfos is described at [Namespace.AllPayloadChunks].
func (ns Namespace) AllPayloadInfos() string { return ns.payloads("M") + ">" }

// PayloadChunks is the subject of the chunks that were written under one id: $O.<store>.C.<id>.
func (ns Namespace) PayloadChunks(id string) string { return ns.payloads("C") + Token(id) }

// PayloadInfo is the subject of what is known of an object: $O.<store>.M.<name in base64>.
func (ns Namespace) PayloadInfo(object string) string {
	return ns.payloads("M") + base64.URLEncoding.EncodeToString([]byte(object))
}

func (ns Namespace) payloads(half string) string {
	return "$O." + ns.StorePayloads() + "." + half + "."
}

// Upload is where the chunks of one upload go: drover.<ns>.api.upload.<broker>.<upload>. The offset
// of a chunk is one more token, see [UploadChunk].
func (ns Namespace) Upload(broker, upload string) string {
	return ns.API("upload") + "." + Token(broker) + "." + Token(upload)
}

// AllUploads matches the chunks of all uploads that a broker takes.
func (ns Namespace) AllUploads(broker string) string {
	return ns.API("upload") + "." + Token(broker) + ".*.*"
}

// UploadChunk is the subject of the chunk at an offset of an upload.
func UploadChunk(upload string, offset int64) string {
	return upload + "." + strconv.FormatInt(offset, 10)
}

// ParseUploadChunk is the inverse of [UploadChunk]. It tells whether the subject is one.
func ParseUploadChunk(subject string) (upload string, offset int64, ok bool) {
	n := strings.LastIndexByte(subject, '.')
	if n < 0 {
		return "", 0, false
	}
	offset, err := strconv.ParseInt(subject[n+1:], 10, 64)
	return subject[:n], offset, err == nil && offset >= 0
}
