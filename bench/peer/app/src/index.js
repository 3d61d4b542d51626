'use strict';

// Lets the public read every content type, makes the locales of LOCALES, leaves a token in token.txt,
// and those of PEER_TOKENS in tokens.json.

const fs = require('fs');
const path = require('path');

async function grant(strapi) {
  const roles = strapi.db.query('plugin::users-permissions.role');
  const permissions = strapi.db.query('plugin::users-permissions.permission');
  const role = await roles.findOne({ where: { type: 'public' } });
  const actions = Object.keys(strapi.contentTypes)
    .filter((uid) => uid.startsWith('api::'))
    .flatMap((uid) => [`${uid}.find`, `${uid}.findOne`])
    .concat('plugin::upload.content-api.find', 'plugin::upload.content-api.findOne');
  for (const action of actions) {
    const where = { action, role: role.id };
    if (!(await permissions.findOne({ where }))) await permissions.create({ data: where });
  }
}

async function addLocales(strapi) {
  const locales = strapi.plugin('i18n').service('locales');
  const known = (await locales.find()).map((locale) => locale.code);
  for (const code of (process.env.LOCALES || '').split(',').filter(Boolean)) {
    if (!known.includes(code)) await locales.create({ code, name: code });
  }
}

async function makeToken(strapi) {
  const file = path.join(strapi.dirs.app.root, 'token.txt');
  if (fs.existsSync(file)) return;
  const tokens = strapi.service('admin::api-token');
  const made = await tokens.create({ name: 'peer', type: 'full-access', lifespan: null, description: '' });
  fs.writeFileSync(file, made.accessKey);
}

async function makeMoreTokens(strapi) {
  const file = path.join(strapi.dirs.app.root, 'tokens.json');
  if (fs.existsSync(file)) return;
  const made = {};
  for (const wanted of JSON.parse(process.env.PEER_TOKENS || '[]')) {
    const token = await strapi.service('admin::api-token').create({ lifespan: null, description: '', ...wanted });
    made[wanted.name] = token.accessKey;
  }
  fs.writeFileSync(file, JSON.stringify(made));
}

module.exports = {
  register() {},
  async bootstrap({ strapi }) {
    await grant(strapi);
    await addLocales(strapi);
    await makeToken(strapi);
    await makeMoreTokens(strapi);
  },
};
