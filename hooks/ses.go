package hooks

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha1" // of signature version 1, which is SNS's default
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/time/rate"

	"github.com/mailgate/mailgate/suppression/bounce"
)

// sns takes the notifications of SES, which Amazon SNS signs for any topic of any account.
type sns struct {
	topics []string
	client *http.Client
	fetch  *rate.Limiter // of certificates and confirmations, since anyone can repeat or forge a call

	mu    sync.Mutex
	certs map[string]*x509.Certificate // by URL; nil while one is being fetched
}

const (
	snsPatience    = 5 * time.Second
	maxCertificate = 64 << 10
	maxCerts       = 64
)

var (
	topicForm = regexp.MustCompile(`^arn:aws[a-z-]*:sns:([a-z0-9-]+):[0-9]{12}:[A-Za-z0-9_-]+$`)
	certPath  = regexp.MustCompile(`^/SimpleNotificationService-[0-9a-f]{32}\.pem$`)

	errCertificate = fmt.Errorf("%w: the certificate of Amazon SNS is not known yet", ErrLater)
)

// NewSES takes the ARNs of topics.
func NewSES(setting string) (Reporter, error) { return NewSESOver(http.DefaultTransport, setting) }

// NewSESOver is NewSES, and fetches the certificates of Amazon SNS and confirms subscriptions over a transport.
func NewSESOver(network http.RoundTripper, setting string) (Reporter, error) {
	client := &http.Client{
		Transport: network, Timeout: snsPatience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s := &sns{client: client, fetch: rate.NewLimiter(1, 4), certs: map[string]*x509.Certificate{}}
	for one := range strings.SplitSeq(setting, ",") {
		if one = strings.TrimSpace(one); !topicForm.MatchString(one) {
			return nil, errors.New("must be ARNs of topics of Amazon SNS, such as arn:aws:sns:eu-west-1:123456789012:bounces")
		}
		s.topics = append(s.topics, one)
	}
	return s, nil
}

// envelope is a message of Amazon SNS.
type envelope struct {
	Type, MessageId, Token, TopicArn, Subject, Message, SubscribeURL, Timestamp string
	SignatureVersion, Signature, SigningCertURL                                 string
}

// signed is what Amazon SNS signs of a message.
func (e *envelope) signed() []byte {
	pairs := []string{"Message", e.Message, "MessageId", e.MessageId}
	if e.Type != "Notification" {
		pairs = append(pairs, "SubscribeURL", e.SubscribeURL)
	} else if e.Subject != "" {
		pairs = append(pairs, "Subject", e.Subject)
	}
	pairs = append(pairs, "Timestamp", e.Timestamp)
	if e.Type != "Notification" {
		pairs = append(pairs, "Token", e.Token)
	}
	pairs = append(pairs, "TopicArn", e.TopicArn, "Type", e.Type)
	return []byte(strings.Join(pairs, "\n") + "\n")
}

// atSNS reports whether a URL is one of Amazon SNS in the region of a topic, with nothing beside host, path and
// query.
func (e *envelope) atSNS(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	region := topicForm.FindStringSubmatch(e.TopicArn)
	if err != nil || region == nil {
		return nil, false
	}
	return u, u.Scheme == "https" && u.Host == "sns."+region[1]+".amazonaws.com" && u.User == nil && u.Fragment == ""
}

func (*sns) Name() string          { return "ses" }
func (*sns) Status(status int) int { return status }

func (s *sns) Genuine(c *Call) error {
	var e envelope
	if !unmarshal(c.Body, &e) || !slices.Contains(s.topics, e.TopicArn) {
		return ErrForged
	}
	c.parsed = &e
	sent, _ := time.Parse(time.RFC3339, e.Timestamp)
	at, ok := e.atSNS(e.SigningCertURL)
	if !ok || c.Now.Sub(sent).Abs() > maxAge || !certPath.MatchString(at.Path) || at.RawQuery != "" {
		return ErrForged
	}
	certificate, err := s.certificate(at.String())
	if err != nil {
		return err
	}
	key, ok := certificate.PublicKey.(*rsa.PublicKey)
	signature, _ := base64.StdEncoding.DecodeString(e.Signature)
	if !ok || c.Now.After(certificate.NotAfter) {
		return ErrForged
	}
	switch e.SignatureVersion {
	case "1":
		sum := sha1.Sum(e.signed())
		return genuineIf(rsa.VerifyPKCS1v15(key, crypto.SHA1, sum[:], signature) == nil)
	case "2":
		sum := sha256.Sum256(e.signed())
		return genuineIf(rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil)
	}
	return ErrForged
}

// certificate returns one that is known, or has it fetched: the call is repeated soon.
func (s *sns) certificate(at string) (*x509.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, begun := s.certs[at]
	if known != nil {
		return known, nil
	}
	if !begun && len(s.certs) < maxCerts && s.fetch.Allow() {
		s.certs[at] = nil
		go s.fetchCertificate(at)
	}
	return nil, errCertificate
}

// fetchCertificate fetches one in the background. One that cannot be had is forgotten, and may be fetched again.
func (s *sns) fetchCertificate(at string) {
	text, err := s.get(context.Background(), at)
	var certificate *x509.Certificate
	if block, _ := pem.Decode(text); err == nil && block != nil {
		certificate, _ = x509.ParseCertificate(block.Bytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.certs[at] = certificate; certificate == nil {
		delete(s.certs, at)
	}
}

func (s *sns) get(ctx context.Context, at string) ([]byte, error) {
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Do(ask)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the status is %d", answer.StatusCode)
	}
	return io.ReadAll(io.LimitReader(answer.Body, maxCertificate))
}

var sesKinds = map[string]bounce.Kind{
	"Bounce": bounce.Soft, "Bounce Permanent": bounce.Hard, "DeliveryDelay": bounce.Soft, "Complaint": bounce.Complaint, "Complaint not-spam": bounce.Other,
}

// notification is what SES publishes, as a notification or as an event of a configuration set. The recipients that it
// names are from the report of a server, which can name any.
type notification struct {
	NotificationType string `json:"notificationType"`
	EventType        string `json:"eventType"`
	Bounce           struct {
		Type string `json:"bounceType"`
	} `json:"bounce"`
	Complaint struct {
		Type string `json:"complaintFeedbackType"`
	} `json:"complaint"`
	Mail jsontext.Value `json:"mail"` // as it was sent, by the word of SES
}

// Events returns that of a notification, and confirms the subscription to a topic of the settings.
func (s *sns) Events(ctx context.Context, c *Call) ([]bounce.Event, error) {
	e := c.parsed.(*envelope)
	if e.Type == "SubscriptionConfirmation" {
		return nil, s.confirm(ctx, e)
	}
	var n notification
	if e.Type != "Notification" || !unmarshal([]byte(e.Message), &n) {
		return []bounce.Event{{Kind: bounce.Other}}, nil
	}
	read := bounce.Event{Kind: kindOf(sesKinds, n.NotificationType+n.EventType, n.Bounce.Type+n.Complaint.Type), Text: string(n.Mail)}
	var mail struct {
		Destination []string `json:"destination"`
	}
	if unmarshal(n.Mail, &mail) && len(mail.Destination) == 1 {
		read.Address = bare(mail.Destination[0])
	}
	return []bounce.Event{read}, nil
}

func (s *sns) confirm(ctx context.Context, e *envelope) error {
	at, ok := e.atSNS(e.SubscribeURL)
	if !ok {
		return nil
	}
	err := errCertificate
	if s.fetch.Allow() {
		_, err = s.get(ctx, at.String())
	}
	if err != nil {
		return fmt.Errorf("%w: Amazon SNS did not take the confirmation of the subscription", ErrLater) // err has the token
	}
	return nil
}
