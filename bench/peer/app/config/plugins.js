'use strict';

module.exports = { 'users-permissions': { config: { jwtSecret: 'peer', ratelimit: { enabled: false } } } };
