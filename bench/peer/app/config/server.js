'use strict';

module.exports = {
  host: '127.0.0.1',
  port: Number(process.env.PORT),
  app: { keys: ['peer-a', 'peer-b'] },
  logger: { updates: { enabled: false }, startup: { enabled: false } },
};
