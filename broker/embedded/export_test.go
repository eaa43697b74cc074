package embedded

import "errors"

// Health returns nil, or what keeps the server from doing its work.
func (s *Server) Health() error {
	if errs := s.unhealthy(); len(errs) > 0 {
		return errors.New(errs[0].Error)
	}
	return nil
}
