package api

import (
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/recovered"
	"github.com/valyala/fasthttp/fasthttpadaptor"
)

// fallback runs Options.Fallback for paths without a route. Of the headers set here, its answers
// keep X-Request-Id only.
func (s *Server) fallback() fiber.Handler {
	return func(c *fiber.Ctx) error {
		err := c.Next()
		if missing, ok := err.(*fiber.Error); !ok || missing.Code != fiber.StatusNotFound {
			return err
		}
		r := requestOf(c)
		r.Route = "fallback"
		c.Response().Reset()
		err = s.runFallback(c)
		set(c, "X-Request-Id", r.RequestID)
		return err
	}
}

// runFallback recovers a panic itself: the library would show its value and lose its stack.
func (s *Server) runFallback(c *fiber.Ctx) error {
	panics := make(chan error, 1)
	fasthttpadaptor.NewFastHTTPHandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if value := recover(); value != nil {
				panics <- recovered.From(value)
			}
		}()
		s.with.Fallback.ServeHTTP(w, r.WithContext(s.open)) // the library's context ends too late
	})(c.Context())
	select {
	case err := <-panics:
		return err
	default:
		return nil
	}
}
