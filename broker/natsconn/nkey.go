package natsconn

import (
	"errors"

	"github.com/nats-io/nats.go"
)

// errOtherNKey reports that the file of the seed holds that of another user than at the first
// connection.
var errOtherNKey = errors.New("the nkey file holds the seed of another user than at the start")

// nkeyOption is the library's NkeyOptionFromSeed, which names the user that the file was read for
// first, and signs with what the file holds at each connection. The two may not fit: the server
// says then, ten times a second and for good, that it refuses the credentials, which are right.
// Changing the user under way was left: the options of a running connection are the library's.
func nkeyOption(file string) (nats.Option, error) {
	first, err := nkeyOf(file)
	if err != nil {
		return nil, err
	}
	return nats.Nkey(first.Nkey, func(nonce []byte) ([]byte, error) {
		now, err := nkeyOf(file)
		if err != nil {
			return nil, err
		}
		if now.Nkey != first.Nkey {
			return nil, errOtherNKey
		}
		return now.SignatureCB(nonce)
	}), nil
}

// nkeyOf reads who the file is for.
func nkeyOf(file string) (o nats.Options, err error) {
	use, err := nats.NkeyOptionFromSeed(file)
	if err == nil {
		err = use(&o)
	}
	return o, err
}
