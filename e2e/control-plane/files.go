package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The files of a control plane, beside the kubeconfig.
const (
	serverCertificate = "server.crt"
	serverKey         = "server.key"
	accountKey        = "service-accounts.key"
	tokens            = "tokens.csv"
)

// writeFiles writes certificates, keys, tokens and the kubeconfig.
func writeFiles(dir, url string) error {
	authority, authorityKey, err := certificate(nil, nil)
	if err != nil {
		return err
	}
	server, key, err := certificate(authority, authorityKey)
	if err != nil {
		return err
	}
	accounts, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	admin, powerless := rand.Text(), rand.Text()
	authorityPEM := encode("CERTIFICATE", authority.Raw)
	for name, content := range map[string]string{
		serverCertificate: encode("CERTIFICATE", server.Raw),
		serverKey:         encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)),
		accountKey:        encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(accounts)),
		tokens:            admin + ",admin,1,\"system:masters\"\n" + powerless + ",powerless,2\n",
		"kubeconfig": fmt.Sprintf(kubeconfig, url,
			base64.StdEncoding.EncodeToString([]byte(authorityPEM)), admin, powerless),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

const kubeconfig = `apiVersion: v1
kind: Config
current-context: admin
clusters:
- name: real
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: admin
  user: {token: %s}
- name: powerless
  user: {token: %s}
contexts:
- name: admin
  context: {cluster: real, user: admin}
- name: powerless
  context: {cluster: real, user: powerless}
`

func encode(kind string, content []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
}

// certificate makes an authority, or with one the certificate of a server on loopback.
func certificate(authority *x509.Certificate, authorityKey *rsa.PrivateKey) (*x509.Certificate, *rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "informer e2e authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(48 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	parent, signer := template, key
	if authority != nil {
		template.SerialNumber = big.NewInt(2)
		template.Subject.CommonName = "kube-apiserver"
		template.IsCA = false
		template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		template.DNSNames = []string{"localhost"}
		parent, signer = authority, authorityKey
	}
	made, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := x509.ParseCertificate(made)
	return parsed, key, err
}

// freePorts finds ports of loopback that nobody listens on.
func freePorts(count int) ([]int, error) {
	ports := make([]int, 0, count)
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		// They stay taken until all are found, so that no two are the same.
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
