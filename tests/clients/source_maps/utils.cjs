/** The one function of @strapi/utils that the reference's marks are made with. */

exports.traverseEntity = require(`${process.env.REFERENCE_UTILS}/dist/traverse-entity.js`);
