'use strict';

// Secrets of a server that listens on 127.0.0.1 for as long as a measurement takes.
module.exports = {
  serveAdminPanel: false,
  auth: { secret: 'peer' },
  apiToken: { salt: 'peer' },
  transfer: { token: { salt: 'peer' } },
  secrets: { encryptionKey: 'peer-encryption-key-of-32-bytes-' },
};
