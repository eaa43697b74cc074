// Package drover has the names of the client that tests need.
package drover

import "context"

type Client struct{}

func (*Client) Start(context.Context, string) error { return nil }
