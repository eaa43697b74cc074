package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// PayloadThreshold is the size in bytes above which a payload does not travel in messages and
// records: it is kept in the object store of its namespace, and a [PayloadRef] stands in its place.
const PayloadThreshold = 256 << 10

// refPrefix begins a payload that is a reference. No text that a person writes begins so, and no
// JSON.
const refPrefix = "\x00drover-ref\x00"

// digestLen is the length of a SHA-256 in hex.
const digestLen = 64

// ErrReference reports a payload that is a reference where its content is wanted: fetch it first.
var ErrReference = errors.New("the payload is a reference")

// PayloadRef names a payload in the object store of its namespace. In a message it stands in the
// place of the payload, in JSON as {"$ref":{"object":…,"size":…,"digest":…}}. Fields that a newer
// version adds are kept.
//
// A program that has only JSON handles large payloads by three kinds of requests:
//
//  1. drover.<ns>.api.upload with {"size":BYTES,"digest":"SHA-256 IN HEX"} is answered with
//     {"subject":"drover.<ns>.api.upload.…","chunkBytes":N}.
//  2. The bytes follow as they are, without any wrapping, at most N at a time, in order, one request
//     after the other, to SUBJECT.OFFSET: the first to SUBJECT.0. Each is answered with
//     {"offset":BYTES SO FAR}, the last one with {"offset":SIZE,"ref":{…}}. A chunk that is not
//     answered may be sent again. After 30 seconds of silence the upload is forgotten; begin anew.
//  3. {"$ref":{…}}, with what came as ref, is then used as any input, result or details.
//
// It reads one by drover.<ns>.api.download with {"object":OBJECT}: the answer is
// {"data":BASE64,"next":CURSOR}, and {"object":OBJECT,"cursor":CURSOR} asks for what follows, until
// there is no next.
type PayloadRef struct {
	// Object is its name in the store: up to 128 letters, digits, '-' and '_'.
	Object string `json:"object"`
	// Size in bytes, at least 1.
	Size int64 `json:"size"`
	// Digest is the SHA-256 of the content, in lower-case hex.
	Digest string `json:"digest"`
}

// Validate says what is wrong with a reference.
func (r *PayloadRef) Validate() error {
	switch {
	case !validObject(r.Object):
		return fmt.Errorf("object is %q: want 1 to 128 letters, digits, '-' and '_'", r.Object)
	case r.Size < 1:
		return fmt.Errorf("size is %d: want at least 1", r.Size)
	}
	return ValidateDigest(r.Digest)
}

// ValidateDigest says what is wrong with the digest of a payload.
func ValidateDigest(digest string) error {
	bad := len(digest) != digestLen
	for _, c := range []byte(digest) {
		bad = bad || (c < '0' || c > '9') && (c < 'a' || c > 'f')
	}
	if bad {
		return fmt.Errorf("digest is %q: want a SHA-256 in lower-case hex", digest)
	}
	return nil
}

func validObject(name string) bool {
	for _, c := range []byte(name) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' &&
			c != '_' {
			return false
		}
	}
	return len(name) >= 1 && len(name) <= 128
}

// RefPayload returns the payload that stands for r.
func RefPayload(r *PayloadRef) Payload {
	b, err := json.Marshal(r)
	if err != nil { // two strings and a number
		panic(fmt.Sprintf("schemas: reference: %v", err))
	}
	return append([]byte(refPrefix), b...)
}

// Ref tells whether p is a reference, and to what.
func (p Payload) Ref() (*PayloadRef, bool) {
	body, ok := p.refBody()
	if !ok {
		return nil, false
	}
	r, err := parseRef(body)
	return r, err == nil
}

// refBody is the JSON of what looks like a reference.
func (p Payload) refBody() (Payload, bool) {
	body, ok := bytes.CutPrefix(p, []byte(refPrefix))
	return body, ok && standsAsJSON(body)
}

func parseRef(body []byte) (*PayloadRef, error) {
	r := &PayloadRef{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, err
	}
	return r, r.Validate()
}

// decodeRef turns the JSON form into a payload; what this version does not know of it stays.
func decodeRef(raw []byte) (Payload, error) {
	if _, err := parseRef(raw); err != nil {
		return nil, fmt.Errorf("payload %s: %w", payloadRef, err)
	}
	b := bytes.NewBufferString(refPrefix)
	if err := json.Compact(b, raw); err != nil {
		return nil, fmt.Errorf("payload %s: %w", payloadRef, err)
	}
	return b.Bytes(), nil
}

// UploadRequest begins to hand over a payload above [PayloadThreshold]. See [PayloadRef] for the
// whole exchange.
type UploadRequest struct {
	V int `json:"v,omitempty"`
	// Size and Digest are those of the whole payload, as in [PayloadRef].
	Size   int64  `json:"size"`
	Digest string `json:"digest"`
	// WorkflowID and Run name the start whose input the payload is, and nothing else. It is not
	// taken where there is no room for a new run, and is removed when that start is refused. Both
	// or none; defaults to a payload of anything.
	WorkflowID string `json:"workflowId,omitempty"`
	Run        string `json:"run,omitempty"`
}

// UploadResponse answers the begin of an upload and each of its chunks.
type UploadResponse struct {
	V int `json:"v,omitempty"`
	// Subject is where the chunks go, with the offset of each as a last token; ChunkBytes is the
	// most that one may hold. Both are in the first answer only.
	Subject    string `json:"subject,omitempty"`
	ChunkBytes int    `json:"chunkBytes,omitempty"`
	// Offset is how many bytes are stored: where the next chunk begins.
	Offset int64 `json:"offset"`
	// Ref is in the answer to the last chunk.
	Ref   *PayloadRef `json:"ref,omitempty"`
	Error *Error      `json:"error,omitempty"`
}

// DownloadRequest asks for a piece of a payload in the object store.
type DownloadRequest struct {
	V      int    `json:"v,omitempty"`
	Object string `json:"object"`
	// Cursor is what the answer before said as next; empty asks for the beginning.
	Cursor string `json:"cursor,omitempty"`
	// Limit bounds the bytes of the answer; one chunk is given at least. Defaults to what the
	// service finds good.
	Limit int `json:"limit,omitempty"`
}

// DownloadResponse is a piece of a payload. Whoever reads it checks the digest of the whole.
type DownloadResponse struct {
	V int `json:"v,omitempty"`
	// Data is base64 in JSON.
	Data []byte `json:"data,omitempty"`
	// Next asks for what follows; empty at the end.
	Next  string `json:"next,omitempty"`
	Error *Error `json:"error,omitempty"`
}
